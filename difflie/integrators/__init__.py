"""One-step methods on the manifolds of `difflie.groups`.

`by_name("RKMK4")` is `RKMK4()`. A method knows nothing of bodies. It moves a point of a manifold
along a vector field, by a discrete action principle, or so that given equations hold at the end of
the step.
"""

from __future__ import annotations

from . import tableaux as tableaux
from .commutator_free import CF2 as CF2
from .commutator_free import CF3 as CF3
from .commutator_free import CF4 as CF4
from .commutator_free import CG2 as CG2
from .commutator_free import CG3 as CG3
from .commutator_free import CG4 as CG4
from .commutator_free import CommutatorFree as CommutatorFree
from .commutator_free import CrouchGrossman as CrouchGrossman
from .convex import ConvexContact as ConvexContact
from .convex import ConvexMechanics as ConvexMechanics
from .descriptor import DescriptorMethod as DescriptorMethod
from .descriptor import DescriptorSystem as DescriptorSystem
from .embedded_munthe_kaas import BogackiShampine32 as BogackiShampine32
from .embedded_munthe_kaas import DormandPrince54 as DormandPrince54
from .embedded_munthe_kaas import EmbeddedMuntheKaas as EmbeddedMuntheKaas
from .embedded_munthe_kaas import RungeKutta43 as RungeKutta43
from .energy_momentum import EnergyMomentum as EnergyMomentum
from .energy_momentum import FrameMechanics as FrameMechanics
from .gauss import GaussLegendre4 as GaussLegendre4
from .gauss import GaussLegendre6 as GaussLegendre6
from .gauss import ImplicitMidpoint as ImplicitMidpoint
from .gauss import SymmetricMethod as SymmetricMethod
from .method import Field as Field
from .method import FieldMethod as FieldMethod
from .method import Method as Method
from .method import State as State
from .method import VectorField as VectorField
from .method import single_step as single_step
from .moreau import Moreau as Moreau
from .moreau import NonsmoothMechanics as NonsmoothMechanics
from .multistep import BDF1 as BDF1
from .multistep import BDF2 as BDF2
from .multistep import GeneralizedAlpha as GeneralizedAlpha
from .munthe_kaas import RKMK2 as RKMK2
from .munthe_kaas import RKMK3 as RKMK3
from .munthe_kaas import RKMK4 as RKMK4
from .munthe_kaas import RKMK5 as RKMK5
from .munthe_kaas import RKMK6 as RKMK6
from .munthe_kaas import RKMK8 as RKMK8
from .munthe_kaas import MuntheKaas as MuntheKaas
from .munthe_kaas import RungeKuttaMuntheKaas as RungeKuttaMuntheKaas
from .partitioned import BodyFixedEuler as BodyFixedEuler
from .partitioned import SemiImplicitEuler as SemiImplicitEuler
from .partitioned import StormerVerlet as StormerVerlet
from .rattle import ConstrainedMechanics as ConstrainedMechanics
from .rattle import Rattle as Rattle
from .registry import METHODS as METHODS
from .registry import by_name as by_name
from .registry import register as register
from .tableau import ButcherTableau as ButcherTableau
from .tableau import CommutatorFreeTableau as CommutatorFreeTableau
from .tableau import EmbeddedTableau as EmbeddedTableau
from .tableau import SymmetricTableau as SymmetricTableau
from .variational import DiscreteMechanics as DiscreteMechanics
from .variational import LieVariational as LieVariational
from .variational import VariationalMidpoint as VariationalMidpoint
