"""Weights: from a seed, or from a folder in diffusers' layout.

A folder holds Flax's msgpack, or safetensors as PyTorch names and lays out
weights; reading those needs no PyTorch.  Names of the two differ in dots
against slashes and underscores and in the last word, so they are compared with
all of that made equal.
"""
import glob
import os
import re
import zlib

import jax
import numpy as np
from flax.serialization import msgpack_restore, msgpack_serialize
from flax.traverse_util import flatten_dict, unflatten_dict
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

# The attention of the VAE has these names in Flax and in old files.
RENAMED = {"query": "to_q", "key": "to_k", "value": "to_v",
           "proj_attn": "to_out_0"}
LAST = {"kernel": "weight", "scale": "weight", "embedding": "weight"}


def shapes(part):
    """The tree of a model's parameters, as shapes."""
    key = jax.random.key(0)
    if hasattr(part, "module"):    # transformers: input shapes are its own
        tree = jax.eval_shape(lambda: part.init_weights(
            jax.random.PRNGKey(0), (1, 77)))
    else:
        tree = jax.eval_shape(lambda: part.init_weights(key))
    return flatten_dict(tree, sep="/")


def from_seed(tree, seed, name, dtype):
    """Weights of unit gain, less where a network ends, so that few pixels are
    beyond white; every array has a generator of its own, so that none depends
    on the order of the others."""
    out = {}
    for path, like in tree.items():
        own = zlib.crc32(f"{name}/{path}".encode())
        rng = np.random.default_rng([seed, own])
        last = path.rsplit("/", 1)[-1]
        if last == "scale":
            w = np.ones(like.shape, np.float32)
        else:
            w = rng.standard_normal(like.shape, dtype=np.float32)
            w *= (0.02 if last in ("bias", "embedding") else
                  (0.3 if "conv_out/" in path else 1) /
                  np.sqrt(np.prod(like.shape[:-1])))
        out[path] = w.astype(dtype)
    return unflatten_dict(out, sep="/")


def plain(name):
    """A name in which Flax's and PyTorch's agree."""
    words = re.split(r"[./]", name)
    words[-1] = LAST.get(words[-1], words[-1])
    name = "/" + "/".join(words).replace("_", "/") + "/"
    for flax, torch in RENAMED.items():
        name = name.replace(f"/{flax.replace('_', '/')}/",
                            f"/{torch.replace('_', '/')}/")
    return name


def from_torch(w, path, shape):
    """PyTorch's layout to Flax's: last dimension is what comes out."""
    if path.endswith("kernel"):
        if w.ndim == 4 and len(shape) == 2:
            w = w[:, :, 0, 0]      # a product kept as convolution by 1x1
        if w.ndim == 2 and len(shape) == 4:
            w = w[:, :, None, None]
        w = w.transpose(2, 3, 1, 0) if w.ndim == 4 else w.T
    return w


def read_safetensors(files, tree):
    """(path, file, weight) of each of the tree, None where there is none."""
    readers = {file: safe_open(file, "np") for file in files}
    where = {plain(k): (file, k) for file, f in readers.items()
             for k in f.keys()}
    for path, like in tree.items():
        file, key = where.get(plain(path), (files[0], None))
        yield path, file, None if key is None else from_torch(
            readers[file].get_tensor(key), path, like.shape)


def read_msgpack(files, tree):
    with open(files[0], "rb") as f:
        found = flatten_dict(msgpack_restore(f.read()), sep="/")
    for path in tree:
        yield path, files[0], found.get(path)


def read(reader, files, tree, dtype):
    out = {}
    try:
        for path, file, w in reader(files, tree):
            if w is None:
                raise SystemExit(f"{file}: no weight for {path}")
            if w.shape != tree[path].shape:
                raise SystemExit(f"{file}: {path} has {w.shape}, the model "
                                 f"wants {tree[path].shape}")
            out[path] = np.ascontiguousarray(w.astype(dtype))
    except (OSError, ValueError, SafetensorError) as e:
        raise SystemExit(f"{files[0]}: not read: {e}") from None
    return unflatten_dict(out, sep="/")


# The first that a folder has is read.
READERS = {"*flax_model.msgpack": read_msgpack,
           "*model.safetensors": read_safetensors,
           "*model-*-of-*.safetensors": read_safetensors,
           "*model.fp16.safetensors": read_safetensors}


def from_folder(folder, tree, dtype):
    """(what was read, weights) of one model's folder."""
    for pattern, reader in READERS.items():
        files = sorted(glob.glob(os.path.join(folder, pattern)))
        if files:
            return files[0], read(reader, files, tree, dtype)
    raise SystemExit(f"{folder}: no file like {', '.join(READERS)}; PyTorch's "
                     "own .bin is not read")


def torch_name(path):
    """PyTorch's name of a weight: numbers are list elements, but linear_1."""
    *words, last = path.split("/")
    words = [w if w.startswith("linear") else re.sub(r"_(\d+)$", r".\1", w)
             for w in words]
    return ".".join(words + [LAST.get(last, last)])


def to_folder(models, folder, form):
    """Writes models in diffusers' layout; form is safetensors or msgpack."""
    for name in ("text_encoder", "unet", "vae"):
        part, where = getattr(models, name), os.path.join(folder, name)
        os.makedirs(where, exist_ok=True)
        text = name == "text_encoder"
        (part.config.save_pretrained if text else part.save_config)(where)
        if form == "msgpack":
            file = "flax_model" if text else "diffusion_flax_model"
            with open(os.path.join(where, f"{file}.msgpack"), "wb") as f:
                f.write(msgpack_serialize(models.params[name]))
            continue
        flat = flatten_dict(models.params[name], sep="/")
        flat = {torch_name(k): np.ascontiguousarray(
            w if not k.endswith("kernel") else
            w.transpose(3, 2, 0, 1) if w.ndim == 4 else w.T)
            for k, w in flat.items()}
        file = "model" if text else "diffusion_pytorch_model"
        save_file(flat, os.path.join(where, f"{file}.safetensors"))
    models.scheduler.save_config(os.path.join(folder, "scheduler"))
