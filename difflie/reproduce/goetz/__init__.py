"""Figures 5.1 to 5.8 and Tables 5.2 and 5.3 of Goetz 2024.

A. Goetz, "Structure preserving simulation for a manipulator with multiarticular elastic couplings",
master's thesis, TU Munich, 2024: how well an energy-stable integrator, a variational one and the
implicit midpoint rule keep the energy of a planar manipulator of three links, with and without
springs, and how fast they are.

What the thesis leaves open and its numbers decide:

* The start of the standard run: stretched out horizontally, at rest. It gives all the magnitudes
  that the thesis states.
* The fastening at the tip, r_4, which the third spring needs: as the others.
* "Variational integrator" is the one with the sine velocity of (4.31). The angle itself over the
  step is as easily had and some twenty times more accurate; both are computed here.

The 3-point Gauss rule is called a method of order 6 (section 5.2.3). That is the order of the
energy error; the state converges with order 2 whatever the rule. The constraint error, which the
thesis takes as a measure of symplecticity (section 5.1.2), is none: the energy-stable method keeps
the constraints and is not symplectic. The order plots of the variational and the reference method
leave their lines above dt = 0.01 s (section 5.2.2); with the equations of every step solved to
rounding they do not, up to steps that have no solution. Table 5.2 gives the reference model 47.20 s
for 50 s and 90.40 %; 47.20 s are 94.40 %.
"""

from __future__ import annotations

from .tables import compute as compute
from .tables import sections as sections
