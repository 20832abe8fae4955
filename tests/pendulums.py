"""The pendulum of many tests."""

import difflie as dl


def pendulum(length=1.0, body="bob", **hinge):
    """1 kg that hangs `length` m below a hinge about y; hinge: fields of its joint."""
    joint = dl.Revolute(axis=(0.0, 1.0, 0.0), **hinge)
    return dl.chain([dl.Body(name=body, joint=joint, mass=1.0, com=(0.0, 0.0, -length))])
