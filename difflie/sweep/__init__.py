"""Sweeps: a function of numbers by name, for many values of them, in chunks that are kept.

`design.py` and `samples.py`: which values; `motions.py`: what is computed by default;
`variants.py`: how it is computed for many rows; `store.py`: how it is kept, and `store_location.py`
where; `run.py`: the loop of all this; `cluster.py` and `worker.py`: the workers of a Dask cluster;
`multi_process.py`: one program in several processes; `statistics.py`, `sensitivity.py`,
`summary.py` and `report.py`: what it comes to.
"""

from ..deprecated import names_of
from .cluster import ClusterError as ClusterError
from .cluster import Dask as Dask
from .design import Design as Design
from .design import Grid as Grid
from .design import Listed as Listed
from .design import Product as Product
from .motions import Motions as Motions
from .report import plot as plot
from .report import report as report
from .run import Engine as Engine
from .run import LocalEngine as LocalEngine
from .run import failures as failures
from .run import sweep as sweep
from .samples import Distribution as Distribution
from .samples import LatinHypercube as LatinHypercube
from .samples import LogUniform as LogUniform
from .samples import Normal as Normal
from .samples import Random as Random
from .samples import Saltelli as Saltelli
from .samples import Sobol as Sobol
from .samples import Uniform as Uniform
from .sensitivity import Indices as Indices
from .sensitivity import Sensitivity as Sensitivity
from .sensitivity import sensitivity as sensitivity
from .statistics import Statistics as Statistics
from .statistics import statistics as statistics
from .store_location import StoreError as StoreError

__getattr__ = names_of(__name__)
