"""The explorer's figures as Plotly's JSON, without colours: the script takes those from the tokens.

Values of a parameter stand at equal distances, as columns: 32, 64, 128 are three choices. Points
that would cover each other are spread within their column, the same way each time.
"""

from codegen_app.explorer_charts.axes import time_title
from codegen_app.explorer_charts.grid import grid
from codegen_app.explorer_charts.link_data import link_data
from codegen_app.explorer_charts.slices import slices
from codegen_app.explorer_charts.trials import trials

__all__ = ["grid", "link_data", "slices", "time_title", "trials"]
