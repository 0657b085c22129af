"""The four models of a Stable Diffusion pipeline, as diffusers and transformers
define them in Flax; only the sizes are ours."""
import dataclasses
import functools
import json
import os
from typing import Any

import jax.numpy as jnp
from diffusers import (FlaxAutoencoderKL, FlaxDDIMScheduler,
                       FlaxDPMSolverMultistepScheduler, FlaxPNDMScheduler,
                       FlaxUNet2DConditionModel)
from transformers import CLIPTextConfig, CLIPTokenizer, FlaxCLIPTextModel

from . import weights
from .stages import Programs
from .tokens import ToyTokenizer

DTYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16}
SCHEDULERS = {"dpm": FlaxDPMSolverMultistepScheduler,
              "ddim": FlaxDDIMScheduler, "pndm": FlaxPNDMScheduler}

# full: Stable Diffusion v1.4, as its configuration files have it.
SIZES = {
    "full": dict(
        image=512,
        text=dict(hidden_size=768, intermediate_size=3072, layers=12, heads=12,
                  vocabulary=49408),
        unet=dict(block_out_channels=(320, 640, 1280, 1280),
                  attention_head_dim=8, layers_per_block=2),
        vae=dict(block_out_channels=(128, 256, 512, 512), layers_per_block=2)),
    "small": dict(
        image=128,
        text=dict(hidden_size=128, intermediate_size=512, layers=4, heads=4,
                  vocabulary=1000),
        unet=dict(block_out_channels=(64, 128, 192, 192),
                  attention_head_dim=4, layers_per_block=1),
        vae=dict(block_out_channels=(32, 64, 96, 96), layers_per_block=1)),
    "tiny": dict(
        image=32,
        text=dict(hidden_size=32, intermediate_size=64, layers=1, heads=2,
                  vocabulary=100),
        unet=dict(block_out_channels=(32, 64), attention_head_dim=2,
                  layers_per_block=1),
        vae=dict(block_out_channels=(32, 32), layers_per_block=1)),
}
PARTS = ("text_encoder", "unet", "vae")


@dataclasses.dataclass
class Models:
    text_encoder: Any
    unet: Any
    vae: Any
    scheduler: Any
    tokenizer: Any
    params: dict          # by part, numpy arrays of the dtype asked for
    dtype: Any
    image: int            # side of the image that the UNet was made for
    notes: list           # what the user ought to know about them

    @functools.cached_property
    def programs(self):
        return Programs(self)

    @property
    def scale(self):
        """Pixels of the image a number of the latents, in each direction."""
        return 2 ** (len(self.vae.config.block_out_channels) - 1)

    @property
    def multiple(self):
        """Of what sides of an image are multiples: Flax's UNet goes up by as
        much as it went down."""
        return self.scale * 2 ** (len(self.unet.config.block_out_channels) - 1)


def blocks(n, kind):
    """v1.4's blocks: attention in all but the smallest resolution."""
    down = (f"CrossAttnDown{kind}",) * (n - 1) + (f"Down{kind}",)
    up = (f"Up{kind}",) + (f"CrossAttnUp{kind}",) * (n - 1)
    return down, up


def text_encoder(config, dtype):
    return FlaxCLIPTextModel(CLIPTextConfig(**config), dtype=dtype,
                             _do_init=False)


def make_parts(size, dtype):
    """The three networks of a size, without weights."""
    s, t = SIZES[size], SIZES[size]["text"]
    text = text_encoder(dict(
        hidden_size=t["hidden_size"], intermediate_size=t["intermediate_size"],
        num_hidden_layers=t["layers"], num_attention_heads=t["heads"],
        vocab_size=t["vocabulary"], bos_token_id=t["vocabulary"] - 2,
        eos_token_id=t["vocabulary"] - 1, max_position_embeddings=77), dtype)
    n = len(s["vae"]["block_out_channels"])
    down, up = blocks(len(s["unet"]["block_out_channels"]), "Block2D")
    unet = FlaxUNet2DConditionModel(
        sample_size=s["image"] // 2 ** (n - 1), down_block_types=down,
        up_block_types=up, cross_attention_dim=t["hidden_size"], dtype=dtype,
        **s["unet"])
    vae = FlaxAutoencoderKL(
        sample_size=s["image"], latent_channels=4, scaling_factor=0.18215,
        down_block_types=("DownEncoderBlock2D",) * n,
        up_block_types=("UpDecoderBlock2D",) * n, dtype=dtype, **s["vae"])
    return dict(text_encoder=text, unet=unet, vae=vae)


def make_scheduler(name, folder=None):
    """A folder's numbers with the class asked for: schedulers of one model
    exchange their configurations."""
    more = {"ddim": dict(clip_sample=False, set_alpha_to_one=False,
                         steps_offset=1),
            "pndm": dict(skip_prk_steps=True, steps_offset=1)}.get(name, {})
    noise = dict(beta_start=0.00085, beta_end=0.012,
                 beta_schedule="scaled_linear", num_train_timesteps=1000)
    path = os.path.join(folder or "", "scheduler", "scheduler_config.json")
    if folder and os.path.exists(path):
        found = read_config(path)
        noise = {k: found.get(k, v) for k, v in noise.items()}
    return SCHEDULERS[name](**noise, **more)


def from_seed(size, dtype, scheduler, seed):
    """Models with weights that a seed gives: no file is read."""
    parts = make_parts(size, DTYPES[dtype])
    params = {k: weights.from_seed(weights.shapes(p), seed, k, DTYPES[dtype])
              for k, p in parts.items()}
    notes = [f"size {size}{' (Stable Diffusion v1.4)' * (size == 'full')}: "
             "weights from a seed, so the picture shows no prompt",
             "a toy tokenizer: words become checksums", "no safety checker"]
    return Models(**parts, scheduler=make_scheduler(scheduler),
                  tokenizer=ToyTokenizer(SIZES[size]["text"]["vocabulary"]),
                  params=params, dtype=DTYPES[dtype],
                  image=SIZES[size]["image"], notes=notes)


def read_config(path):
    try:
        with open(path) as f:
            return json.load(f)
    except OSError as e:
        raise SystemExit(f"{path}: {e.strerror}; a checkpoint in diffusers' "
                         f"layout has {', '.join(PARTS)}, each with "
                         "config.json and weights") from None
    except ValueError as e:
        raise SystemExit(f"{path}: not JSON: {e}") from None


def from_folder(folder, dtype, scheduler):
    """Models of a folder in diffusers' layout, safetensors or msgpack."""
    dt, parts, params, notes = DTYPES[dtype], {}, {}, ["no safety checker"]
    if not os.path.isdir(folder):
        raise SystemExit(f"{folder}: no such folder")
    for name in PARTS:
        config = read_config(os.path.join(folder, name, "config.json"))
        if name == "text_encoder":
            parts[name] = text_encoder(config, dt)
        else:
            cls = {"unet": FlaxUNet2DConditionModel,
                   "vae": FlaxAutoencoderKL}[name]
            parts[name] = cls.from_config(config, dtype=dt)
        path, params[name] = weights.from_folder(
            os.path.join(folder, name), weights.shapes(parts[name]), dt)
        notes.append(f"{name} from {path}")
    text, unet = parts["text_encoder"].config, parts["unet"].config
    if unet.cross_attention_dim != text.hidden_size:
        raise SystemExit(
            f"{folder}: its UNet takes texts of width "
            f"{unet.cross_attention_dim}, its text encoder gives "
            f"{text.hidden_size}: no Stable Diffusion 1 or 2")
    tokens = os.path.join(folder, "tokenizer")
    if all(os.path.exists(os.path.join(tokens, file))
           for file in ("vocab.json", "merges.txt")):
        tokenizer = CLIPTokenizer.from_pretrained(tokens)
    else:
        tokenizer = ToyTokenizer(text.vocab_size)
        notes.append(f"no vocab.json and merges.txt in {tokens}: "
                     "a toy tokenizer")
    scale = 2 ** (len(parts["vae"].config.block_out_channels) - 1)
    return Models(**parts, scheduler=make_scheduler(scheduler, folder),
                  tokenizer=tokenizer, params=params, dtype=dt, notes=notes,
                  image=unet.sample_size * scale)
