"""The parts of examples/stable_diffusion.py.

models.py   which models: shapes of Stable Diffusion v1.4 and smaller ones
weights.py  where their weights come from: a seed, or a folder of the user's
tokens.py   a tokenizer for when there is no vocabulary
stages.py   text, step and decoder as compiled programs on a device
"""
