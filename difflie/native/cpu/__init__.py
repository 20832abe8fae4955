"""Loops as machine code for CPUs: LLVM IR, compiled by llvmlite, called by XLA."""
