"""Tables V to VIII and X and Figures 4 to 8 of Park and Chung 2005.

J. Park and W.-K. Chung, "Geometric integration on Euclidean group with application to articulated
multibody systems", IEEE Transactions on Robotics 21(5), 2005: how well Lie-group integrators of
three families (Crouch-Grossman, commutator-free, and Munthe-Kaas, here RKMK) keep the energy and
the momentum of three bodies on two revolute joints that move freely in space.

What the paper leaves open and its numbers decide:

* The geometry of Figure 3, see `three_spheres`. Eight geometries, images of one another under
  rotations and reflections, give the tabulated drifts, because these start with the base at rest.
* The methods of order 2 use Heun's tableau, CG2 and CF2 with two exponentials in the update.
* CG4 uses coefficients in full precision, not the fractions of Table I(b). With those of this
  package its drifts fall with h^4 down to round-off, and do not level off before as in Figure 4.

Figures 7 and 8 start with a moving base and so depend on the geometry; they are computed for one of
the eight. In all eight the momenta of CG4 drift 1.5 to 2.2 times as far in 200 s as those of CF4
and MK4, in agreement with the paper, and those of MK4 a few percent further than those of CF4,
where the paper sees a slight advantage of MK4.

Table X counts the operations of one step. The rule of `operations_per_step` gives 75 of its 81
numbers; no rule gives all of them:

* CF4 and MK4 rest on the same tableau, the classical one, so svmultadd(N), which is spent on the
  joints alone, must be the same. The table has 20 and 14. 20 counts the three zeros of the tableau
  too; but 8, for CF3 and MK3, leaves out the two zeros of theirs. svmultadd(6) of CF4 counts the
  same three zeros.
* CF3 and MK3 both have two exponents of one term and one of two. In CF3 the second term is counted
  in svmultadd(6), in MK3 in svmultadd(6) and svmult(6), and in MK2 in svmult(6) alone. MK4 is
  counted as MK3 is.

Table V follows from the printed Table X without exception. With the counts of the rule CF4 is
cheaper than MK4 for 20 joints as well; that the paper finds the opposite comes from the zeros.
"""

from .comparison import agreements as agreements
from .comparison import compute as compute
from .comparison import sections as sections
