"""The groups of rigid motion and the manifolds built from them."""

from . import directors as directors
from . import quaternion as quaternion
from . import se3 as se3
from . import so3 as so3
from .attitudes import SO3 as SO3
from .attitudes import UnitQuaternion as UnitQuaternion
from .charts import Cayley as Cayley
from .charts import Chart as Chart
from .charts import Exponential as Exponential
from .manifold import Euclidean as Euclidean
from .manifold import FlatManifold as FlatManifold
from .manifold import Manifold as Manifold
from .poses import SE3 as SE3
from .poses import Pose as Pose
from .products import FlatProduct as FlatProduct
from .products import Product as Product
