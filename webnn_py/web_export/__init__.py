"""Graphs as JavaScript: a folder with a module that builds one by ``navigator.ml``, its weights, and a page.

save_js   the public function
folder    writes all of it
module    the module, and its TypeScript declarations
weights   constants: short ones stand in the module, the others in one file
names     of the module's variables
literals  values as JavaScript writes them
assets    what is the same for every graph: the running of it, and the page
"""

from webnn_py.web_export.save_js import save_js as save_js
