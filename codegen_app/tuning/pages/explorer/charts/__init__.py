"""The explorer's figures as Plotly JSON without colours: the script takes those from the design
tokens.

Values of a parameter are equally spaced columns: 32, 64, 128 are three choices. Points that would
overlap are spread within their column, deterministically.
"""

from codegen_app.tuning.pages.explorer.charts.axes import time_title
from codegen_app.tuning.pages.explorer.charts.grid import grid
from codegen_app.tuning.pages.explorer.charts.link_data import link_data
from codegen_app.tuning.pages.explorer.charts.slices import slices
from codegen_app.tuning.pages.explorer.charts.trials import trials

__all__ = ["grid", "link_data", "slices", "time_title", "trials"]
