"""What is seen: pictures of machines, plots, reports, and the viewer in a browser.

It takes a system with its motion, or arrays and names, and computes no motion itself.
"""

from ..deprecated import names_of
from .animate import write_picture as write_picture
from .camera import Camera as Camera
from .camera import along_line as along_line
from .drawing import DrawOptions as DrawOptions
from .drawing import draw as draw
from .scenes import Scene as Scene
from .scenes import scene as scene
from .scenes import still as still

__getattr__ = names_of(__name__)
