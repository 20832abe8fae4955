"""Forces besides inertia and gravity."""

from .inputs import FirstOrderHold as FirstOrderHold
from .inputs import SampledInput as SampledInput
from .inputs import ZeroOrderHold as ZeroOrderHold
from .passive import passive_force as passive_force
