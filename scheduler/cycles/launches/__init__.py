"""A launch of somebody else's kernel, said in JSON: what the model needs beside the code."""
