"""Text, step and decoder: three compiled programs on one device.

A program for each lets a progress bar move, and each stage be timed and held
against another device.  `whole` is diffusers' own pipeline in one program.
"""
import dataclasses
import time

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass
class Job:
    prompts: list
    steps: int
    guidance: float
    seeds: list                             # one a prompt
    height: int
    width: int


@dataclasses.dataclass
class Run:
    image: np.ndarray                       # of float32, 0 to 1
    text: np.ndarray
    latents: list                           # after each step
    seconds: dict                           # text, steps, decoder


class Programs:
    """The stages of models, compiled at first use on a device and traced once
    for all devices."""

    def __init__(self, models):
        self.m = models
        self.text = jax.jit(self._text)
        self.start = jax.jit(self._start, static_argnums=1)
        self.step = jax.jit(self._step, donate_argnums=(1, 2))
        self.decode = jax.jit(self._decode)

    def _text(self, params, ids, empty):
        """Embeddings of no prompt and of the prompt, for guidance."""
        return jnp.concatenate([self.m.text_encoder(i, params=params)[0]
                                for i in (empty, ids)])

    def _start(self, noise, steps):
        """First latents, and the scheduler's state."""
        state = self.m.scheduler.create_state()
        return noise * state.init_noise_sigma, self.m.scheduler.set_timesteps(
            state, steps, noise.shape)

    def _step(self, params, latents, state, context, guidance, i):
        t = jnp.asarray(state.timesteps, jnp.int32)[i]
        both = self.m.scheduler.scale_model_input(
            state, jnp.concatenate([latents] * 2), t)
        noise = self.m.unet.apply(
            {"params": params}, both, jnp.broadcast_to(t, both.shape[0]),
            encoder_hidden_states=context).sample
        without, with_prompt = jnp.split(noise, 2)
        noise = without + guidance * (with_prompt - without)
        return self.m.scheduler.step(state, noise, t, latents).to_tuple()

    def _decode(self, params, latents):
        latents = latents / self.m.vae.config.scaling_factor
        image = self.m.vae.apply({"params": params}, latents,
                                 method=self.m.vae.decode).sample
        image = (image / 2 + 0.5).clip(0, 1).transpose(0, 2, 3, 1)
        return image.astype(jnp.float32)


class Stages:
    """The pipeline of models on a device."""

    def __init__(self, models, device):
        self.m, self.device = models, device
        self.params = jax.device_put(models.params, device)

    def noise(self, job):
        """Depends on its image's seed alone, whatever computes it."""
        shape = (self.m.unet.config.in_channels, job.height // self.m.scale,
                 job.width // self.m.scale)
        noise = np.stack([np.random.default_rng(seed).standard_normal(
            shape, dtype=np.float32) for seed in job.seeds])
        return jax.device_put(noise, self.device)

    def ids(self, prompts):
        return self.m.tokenizer(
            prompts, padding="max_length", truncation=True,
            max_length=self.m.tokenizer.model_max_length,
            return_tensors="np").input_ids

    def __call__(self, job, keep=False, progress=None):
        """keep: latents of each step come back; progress: called each step."""
        seconds, clock = {}, time.perf_counter
        begin = clock()
        ids = [jax.device_put(self.ids(p), self.device)
               for p in (job.prompts, [""] * len(job.prompts))]
        text = jax.block_until_ready(
            self.m.programs.text(self.params["text_encoder"], *ids))
        seconds["text"] = clock() - begin
        guidance, kept, begin = np.float32(job.guidance), [], clock()
        latents, state = self.m.programs.start(self.noise(job), job.steps)
        for i in range(job.steps):
            latents, state = self.m.programs.step(
                self.params["unet"], latents, state, text, guidance,
                np.int32(i))
            if keep:
                kept.append(np.array(latents))
            if progress:
                jax.block_until_ready(latents)
                progress()
        jax.block_until_ready(latents)
        seconds["steps"], begin = clock() - begin, clock()
        image = np.asarray(self.m.programs.decode(self.params["vae"], latents))
        seconds["decoder"] = clock() - begin
        return Run(image, np.asarray(text.astype(jnp.float32)), kept, seconds)


def whole(models, job, devices):
    """diffusers' pipeline as its documentation has it: replicated weights,
    prompts and seeds sharded over the devices, one program."""
    from diffusers import FlaxStableDiffusionPipeline
    from flax.jax_utils import replicate
    m, n = models, len(devices)
    pipe = FlaxStableDiffusionPipeline(
        vae=m.vae, text_encoder=m.text_encoder, tokenizer=m.tokenizer,
        unet=m.unet, scheduler=m.scheduler, safety_checker=None,
        feature_extractor=None, dtype=m.dtype)
    params = replicate(dict(m.params, scheduler=m.scheduler.create_state()),
                       devices)
    ids = pipe.prepare_inputs(job.prompts)
    ids = ids.reshape(n, -1, ids.shape[-1])
    keys = jax.random.split(jax.random.PRNGKey(job.seeds[0]), n)

    def call():
        images = pipe(ids, params, keys, job.steps, job.height, job.width,
                      job.guidance, jit=True).images
        return images.reshape(-1, *images.shape[-3:]).astype(np.float32)
    return call
