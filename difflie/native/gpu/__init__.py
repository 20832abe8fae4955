"""Loops as kernels for NVIDIA GPUs: CUDA C, compiled by NVRTC, launched from calls of XLA."""
