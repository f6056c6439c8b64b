"""``.webnn`` files: graphs as text, with the weights in a file of their own (webmachinelearning/proposals issue 16).

files     the public functions
text      the records of a file, and how its text is read
weights   constants as safetensors
building  a file's graph drawn with a builder
writing   a builder's graph as a file
"""

from webnn_py.webnn_files.files import load_webnn as load_webnn
from webnn_py.webnn_files.files import save_webnn as save_webnn
from webnn_py.webnn_files.text import WebnnFileError as WebnnFileError
