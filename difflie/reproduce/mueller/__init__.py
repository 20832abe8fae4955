"""The eight transition maps of Mueller's Table 1 at work, and which joints they keep closed.

A. Mueller, "Singularity-free Lie group integration and geometrically consistent evaluation of
multibody system models described in terms of standard absolute coordinates": a Lie-group method in
local coordinates X steps the absolute coordinates q of every body by q' = tau(q, X). The text
derives the eight combinations of absolute and local coordinates (`transition.py`) without a
computed example; this is one.

Bodies without joints carry constraints, which nothing stabilises (`bodies.py`), so that what a step
loses is seen. A joint to the ground allows the motions of a subgroup. Steps of SE(3), of screws as
of extended Rodrigues parameters, do not leave it: the joint stays closed to rounding at every step
size. Steps of SO(3) x R^3 leave it by an error of the order of the method. Between two moving
bodies neither group helps.

The heavy top is the usual one (15 kg, 150 rad/s); a machine on joints, without constraints, gives
the exact motions.
"""

from .comparison import agreements as agreements
from .comparison import compute as compute
from .comparison import sections as sections
