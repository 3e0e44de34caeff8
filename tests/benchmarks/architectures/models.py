"""More than a hundred architectures with small random configurations, and inputs for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

Made: TypeAlias = tuple[Any, tuple[Any, ...]]  # a module and its arguments

_VOCABULARY, _LENGTH = 96, 12
# What small configurations of transformers say, by its own common names.
_SMALL: Mapping[str, Any] = {
    "vocab_size": _VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_DECODER = {**_SMALL, "intermediate_size": 64, "max_position_embeddings": 64}
_GROUPED = {**_DECODER, "num_key_value_heads": 2}
_HEADS = {**_GROUPED, "head_dim": 8}


@dataclass(frozen=True)
class Architecture:
    """One model: ``make`` gives it with its arguments."""

    name: str
    field: str
    make: Callable[[], Made]


class Only(torch.nn.Module):
    """A model of transformers or diffusers that gives its tensors alone."""

    def __init__(self, model: Any, names: tuple[str, ...], **options: Any) -> None:
        super().__init__()
        self.model, self.names, self.options = model, names, options

    def forward(self, *given: Any) -> Any:
        made = self.model(**dict(zip(self.names, given, strict=True)), **self.options)
        values = made.to_tuple() if hasattr(made, "to_tuple") else made
        return [value for value in values if isinstance(value, torch.Tensor)]


def _tokens(rows: int = 2) -> Any:
    return torch.randint(3, _VOCABULARY, (rows, _LENGTH))


def _config(kind: str, options: Mapping[str, Any]) -> Any:
    from transformers import AutoConfig

    return AutoConfig.for_model(kind, **options)


def causal(kind: str, **options: Any) -> Made:
    """A decoder with its head: tokens to logits."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_config(_config(kind, options))
    return Only(model, ("input_ids",), use_cache=False), (_tokens(),)


def encoder(kind: str, **options: Any) -> Made:
    """Tokens and their mask to states."""
    from transformers import AutoModel

    model = AutoModel.from_config(_config(kind, options))
    tokens = _tokens()
    mask = torch.ones_like(tokens)
    mask[1, -3:] = 0
    return Only(model, ("input_ids", "attention_mask")), (tokens, mask)


def translator(kind: str, **options: Any) -> Made:
    """Encoder and decoder: two rows of tokens to logits."""
    from transformers import AutoModelForSeq2SeqLM

    model = AutoModelForSeq2SeqLM.from_config(_config(kind, options))
    names = ("input_ids", "decoder_input_ids")
    return Only(model, names, use_cache=False), (_tokens(), _tokens()[:, :7])


def images(kind: str, size: int = 32, **options: Any) -> Made:
    """Pictures to states."""
    from transformers import AutoModel

    model = AutoModel.from_config(_config(kind, options))
    return Only(model, ("pixel_values",)), (torch.randn(1, 3, size, size),)


def sounds(kind: str, samples: int = 4000, **options: Any) -> Made:
    """A waveform to states."""
    from transformers import AutoModel

    model = AutoModel.from_config(_config(kind, options))
    return Only(model, ("input_values",)), (torch.randn(1, samples),)


def timm(name: str, size: int = 64, **options: Any) -> Made:
    """A classifier of pictures."""
    import timm

    model = timm.create_model(name, pretrained=False, num_classes=10, **options)
    return model, (torch.randn(1, 3, size, size),)


def _clip(kind: str) -> Made:
    from transformers import AutoModel

    text = {**_DECODER, "projection_dim": 16}
    vision = {**_DECODER, "image_size": 32, "patch_size": 8, "projection_dim": 16}
    for unlike in ("vocab_size", "pad_token_id", "bos_token_id", "eos_token_id"):
        vision.pop(unlike, None)
    config = _config(kind, {"text_config": text, "vision_config": vision})
    model = AutoModel.from_config(config)
    names = ("input_ids", "pixel_values")
    return Only(model, names), (_tokens(), torch.randn(2, 3, 32, 32))


def _whisper() -> Made:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        **{k: v for k, v in _SMALL.items() if k in ("vocab_size", "pad_token_id")},
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_mel_bins=8,
        max_source_positions=20,
        max_target_positions=32,
        decoder_start_token_id=1,
        bos_token_id=1,
        eos_token_id=2,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    model = WhisperForConditionalGeneration(config)
    names = ("input_features", "decoder_input_ids")
    return Only(model, names, use_cache=False), (torch.randn(1, 8, 40), _tokens(1)[:, :6])


def _detr() -> Made:
    from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

    backbone = ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], out_features=["stage2"]
    )
    config = DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=backbone,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_queries=6,
        num_labels=5,
    )
    model = DetrForObjectDetection(config)
    given = (torch.randn(1, 3, 64, 64), torch.ones(1, 64, 64, dtype=torch.int64))
    return Only(model, ("pixel_values", "pixel_mask")), given


def _sam() -> Made:
    from transformers import SamConfig, SamModel

    vision = {
        "hidden_size": 32,
        "output_channels": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": 64,
        "patch_size": 8,
        "window_size": 4,
        "global_attn_indexes": [1],
        "mlp_dim": 64,
        "num_pos_feats": 8,
    }
    prompt = {"hidden_size": 16, "image_size": 64, "patch_size": 8, "mask_input_channels": 4}
    decoder = {
        "hidden_size": 16,
        "mlp_dim": 32,
        "num_attention_heads": 2,
        "iou_head_hidden_dim": 16,
    }
    config = SamConfig(
        vision_config=vision, prompt_encoder_config=prompt, mask_decoder_config=decoder
    )
    given = (torch.randn(1, 3, 64, 64), torch.tensor([[[[20.0, 30.0]]]]))
    return Only(SamModel(config), ("pixel_values", "input_points")), given


def _masked_autoencoder() -> Made:
    from transformers import AutoModel

    smaller = {"decoder_hidden_size": 16, "decoder_num_attention_heads": 2}
    model = AutoModel.from_config(_config("vit_mae", {**_PICTURES, **smaller}))
    # Which patches are masked is given: left to itself it is random.
    given = (torch.randn(1, 3, 32, 32), torch.rand(1, 16))
    return Only(model, ("pixel_values", "noise")), given


def _segformer() -> Made:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 16, 24, 32],
        num_attention_heads=[1, 2, 2, 4],
        decoder_hidden_size=16,
        num_labels=5,
    )
    model = SegformerForSemanticSegmentation(config)
    return Only(model, ("pixel_values",)), (torch.randn(1, 3, 64, 64),)


def _dac() -> Made:
    from transformers import DacConfig, DacModel

    config = DacConfig(
        encoder_hidden_size=8, downsampling_ratios=[2, 4], upsampling_ratios=[4, 2],
        decoder_hidden_size=32, n_codebooks=2, codebook_size=16, codebook_dim=4,
    )  # fmt: skip
    return Only(DacModel(config), ("input_values",)), (torch.randn(1, 1, 320),)


def _unet() -> Made:
    from diffusers import UNet2DModel

    model = UNet2DModel(
        sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, norm_num_groups=4,
        block_out_channels=(8, 16), down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )  # fmt: skip
    given = (torch.randn(1, 3, 16, 16), torch.tensor([7]))
    return Only(model, ("sample", "timestep")), given


def _conditioned_unet() -> Made:
    from diffusers import UNet2DConditionModel

    model = UNet2DConditionModel(
        sample_size=16, layers_per_block=1, norm_num_groups=4, cross_attention_dim=24,
        block_out_channels=(8, 16), attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )  # fmt: skip
    given = (torch.randn(1, 4, 16, 16), torch.tensor(7), torch.randn(1, 5, 24))
    return Only(model, ("sample", "timestep", "encoder_hidden_states")), given


def _autoencoder() -> Made:
    from diffusers import AutoencoderKL

    model = AutoencoderKL(
        block_out_channels=(8, 16), norm_num_groups=4, latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip

    class Round(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, image: Any) -> Any:
            return self.model.decode(self.model.encode(image).latent_dist.mode()).sample

    return Round(), (torch.randn(1, 3, 16, 16),)


def _dit() -> Made:
    from diffusers import DiTTransformer2DModel

    model = DiTTransformer2DModel(
        num_attention_heads=4, attention_head_dim=8, in_channels=4, out_channels=8, num_layers=2,
        sample_size=8, norm_num_groups=4, num_embeds_ada_norm=10,
    )  # fmt: skip
    given = (torch.randn(1, 4, 8, 8), torch.tensor([7]), torch.tensor([3]))
    return Only(model, ("hidden_states", "timestep", "class_labels")), given


def _of(field: str, how: Callable[..., Made], kind: str, /, **options: Any) -> Architecture:
    return Architecture(kind, field, lambda: how(kind, **options))


_BART = {
    **_SMALL, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64, "max_position_embeddings": 64, "decoder_start_token_id": 1,
}  # fmt: skip
_BART = {k: v for k, v in _BART.items() if k not in ("hidden_size", "num_attention_heads")}
_T5 = {
    "vocab_size": _VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2,
    "num_heads": 4, "decoder_start_token_id": 0,
}  # fmt: skip
_EXPERTS = {**_GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}
_QWEN_EXPERTS = {
    **_HEADS, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
}  # fmt: skip
_DEEPSEEK = {
    **_DECODER, "num_key_value_heads": 4, "n_routed_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8, "v_head_dim": 8, "n_shared_experts": 1, "first_k_dense_replace": 1,
    "n_group": 1, "topk_group": 1,
}  # fmt: skip
_PICTURES = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "image_size": 32, "patch_size": 8,
}  # fmt: skip
_SPEECH = {
    **_SMALL, "intermediate_size": 64, "conv_dim": (16, 16, 16), "conv_stride": (5, 2, 2),
    "conv_kernel": (10, 3, 3), "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 4,
    "num_feat_extract_layers": 3,
}  # fmt: skip

_LANGUAGE = (
    _of("language", causal, "gpt2", **_DECODER),
    _of("language", causal, "openai-gpt", **_DECODER),
    _of(
        "language",
        causal,
        "gpt_neo",
        **_DECODER,
        num_layers=2,
        attention_types=[[["global", "local"], 1]],
        window_size=4,
    ),
    _of("language", causal, "gpt_neox", **_DECODER),
    _of("language", causal, "gptj", **_DECODER, rotary_dim=4),
    _of("language", causal, "codegen", **_DECODER, rotary_dim=4),
    _of("language", causal, "gpt_bigcode", **_DECODER),
    _of("language", causal, "opt", **_DECODER, ffn_dim=64, word_embed_proj_dim=32),
    _of("language", causal, "bloom", **_DECODER),
    _of("language", causal, "mpt", **_DECODER),
    _of("language", causal, "falcon", **_DECODER),
    _of("language", causal, "llama", **_GROUPED),
    _of("language", causal, "mistral", **_GROUPED, sliding_window=4),
    _of("language", causal, "qwen2", **_GROUPED),
    _of("language", causal, "qwen3", **_HEADS),
    _of("language", causal, "gemma", **_HEADS),
    _of("language", causal, "gemma2", **_HEADS, sliding_window=4),
    _of("language", causal, "gemma3_text", **_HEADS, sliding_window=4),
    _of("language", causal, "phi", **_DECODER),
    _of("language", causal, "phi3", **_GROUPED),
    _of("language", causal, "olmo2", **_GROUPED),
    _of("language", causal, "stablelm", **_GROUPED),
    _of("language", causal, "starcoder2", **_GROUPED),
    _of("language", causal, "cohere", **_GROUPED),
    _of("language", causal, "granite", **_GROUPED),
    _of("language", causal, "glm4", **_HEADS),
    _of("language", causal, "nemotron", **_HEADS),
    _of("language", causal, "smollm3", **_GROUPED),
    _of("language", causal, "xglm", **_BART, num_layers=2, attention_heads=4, ffn_dim=64),
    _of("experts", causal, "mixtral", **_EXPERTS),
    _of(
        "experts",
        causal,
        "qwen2_moe",
        **{k: v for k, v in _QWEN_EXPERTS.items() if k != "head_dim"},
    ),
    _of("experts", causal, "qwen3_moe", **_QWEN_EXPERTS),
    _of("experts", causal, "olmoe", **_GROUPED, num_experts=4, num_experts_per_tok=2),
    _of("experts", causal, "deepseek_v2", **_DEEPSEEK),
    _of("experts", causal, "deepseek_v3", **_DEEPSEEK),
    _of(
        "experts",
        causal,
        "gpt_oss",
        **_HEADS,
        num_local_experts=4,
        num_experts_per_tok=2,
        sliding_window=4,
    ),
    _of("state space", causal, "mamba", **_SMALL, state_size=8, time_step_rank=4),
    _of(
        "state space",
        causal,
        "mamba2",
        **{**_SMALL, "hidden_size": 32},
        num_heads=8,
        head_dim=8,
        expand=2,
        n_groups=1,
        state_size=8,
        chunk_size=4,
    ),
    _of(
        "state space",
        causal,
        "rwkv",
        **{k: v for k, v in _SMALL.items() if k != "num_attention_heads"},
        attention_hidden_size=32,
        intermediate_size=64,
        context_length=16,
    ),
    _of(
        "state space",
        causal,
        "jamba",
        **_GROUPED,
        num_experts=2,
        num_experts_per_tok=1,
        mamba_d_state=8,
        mamba_dt_rank=4,
        use_mamba_kernels=False,
        attn_layer_period=2,
        attn_layer_offset=1,
    ),
    _of(
        "state space", causal, "recurrent_gemma", **_GROUPED, lru_width=32, attention_window_size=8
    ),
    _of("language", encoder, "bert", **_DECODER),
    _of("language", encoder, "roberta", **_DECODER),
    _of("language", encoder, "xlm-roberta", **_DECODER),
    _of("language", encoder, "electra", **_DECODER, embedding_size=16),
    _of("language", encoder, "albert", **_DECODER, embedding_size=16),
    _of(
        "language",
        encoder,
        "distilbert",
        vocab_size=_VOCABULARY,
        dim=32,
        n_layers=2,
        n_heads=4,
        hidden_dim=64,
        max_position_embeddings=64,
    ),
    _of(
        "language",
        encoder,
        "deberta",
        **_DECODER,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
    ),
    _of(
        "language",
        encoder,
        "deberta-v2",
        **_DECODER,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        position_buckets=8,
        share_att_key=True,
    ),
    _of("language", encoder, "mpnet", **_DECODER),
    _of("language", encoder, "modernbert", **_DECODER, local_attention=4),
    _of(
        "language",
        encoder,
        "squeezebert",
        **_DECODER,
        embedding_size=32,
        q_groups=2,
        k_groups=2,
        v_groups=2,
        post_attention_groups=1,
        intermediate_groups=2,
        output_groups=2,
    ),
    _of("language", encoder, "roformer", **_DECODER),
    _of(
        "language",
        encoder,
        "fnet",
        **{k: v for k, v in _DECODER.items() if k != "num_attention_heads"},
    ),
    _of("language", translator, "t5", **_T5),
    _of("language", translator, "bart", **_BART),
    _of("language", translator, "pegasus", **_BART),
)

_CONVOLUTIONAL = (
    "resnet18",
    "resnet26d",
    "skresnet18",
    "mobilenetv2_050",
    "mobilenetv3_small_050",
    "efficientnet_b0",
    "tf_efficientnetv2_b0",
    "regnety_002",
    "densenet121",
    "convnext_atto",
    "convnextv2_atto",
    "repvgg_a0",
    "ghostnet_050",
    "vgg11",
    "edgenext_xx_small",
    "poolformer_s12",
    "dla34",
    "hrnet_w18_small",
    "dpn48b",
    "res2net50_26w_4s",
    "nfnet_l0",
    "mobilevit_xxs",
    "fastvit_t8",
)
# Those that have a size of pictures of their own, which small ones replace.
_PATCHES: Mapping[str, Mapping[str, Any]] = {
    "vit_tiny_patch16_224": {"depth": 2},
    "deit_tiny_distilled_patch16_224": {"depth": 2},
    "deit3_small_patch16_224": {"depth": 2},
    "beit_base_patch16_224": {"depth": 2, "embed_dim": 48, "num_heads": 4},
    "mixer_s32_224": {},
    "resmlp_12_224": {},
    "gmlp_ti16_224": {},
    "cait_xxs24_224": {"depth": 2},
    "xcit_nano_12_p16_224": {"depth": 2},
    "convit_tiny": {"depth": 3},
    "volo_d1_224": {},
    "eva02_tiny_patch14_224": {"depth": 2, "img_size": 56},
}

_VISION = (
    *(_of("vision", timm, name) for name in _CONVOLUTIONAL),
    *(
        _of(
            "vision", timm, name, **{"img_size": 64, "size": options.get("img_size", 64), **options}
        )
        for name, options in _PATCHES.items()
    ),
    _of(
        "vision",
        timm,
        "swin_tiny_patch4_window7_224",
        img_size=64,
        window_size=4,
        embed_dim=24,
        depths=(2, 2),
        num_heads=(2, 4),
    ),
    _of(
        "vision",
        timm,
        "swinv2_tiny_window8_256",
        img_size=64,
        window_size=4,
        embed_dim=24,
        depths=(2, 2),
        num_heads=(2, 4),
    ),
    _of("vision", timm, "maxvit_rmlp_pico_rw_256", img_size=64),
    _of("vision", timm, "coatnet_pico_rw_224", img_size=64),
    _of("vision", timm, "levit_128s", size=224),
    _of("vision", timm, "inception_v3", size=96),
    _of("vision", images, "vit", **_PICTURES),
    _of(
        "vision",
        images,
        "dinov2",
        **{k: v for k, v in _PICTURES.items() if k != "intermediate_size"},
    ),
    _of("vision", images, "siglip_vision_model", **_PICTURES),
    Architecture("vit_mae", "vision", _masked_autoencoder),
    _of(
        "vision",
        images,
        "hiera",
        size=64,
        image_size=[64, 64],
        embed_dim=16,
        depths=[1, 1, 1, 1],
        num_heads=[1, 1, 2, 4],
    ),
    _of("vision", images, "resnet", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]),
    _of(
        "vision",
        images,
        "mobilevit",
        size=64,
        image_size=64,
        hidden_sizes=[16, 24, 32],
        neck_hidden_sizes=[8, 8, 16, 16, 24, 24, 32],
        num_attention_heads=2,
    ),
    _of(
        "vision",
        images,
        "pvt_v2",
        size=64,
        image_size=64,
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 2, 2, 4],
    ),
    Architecture("clip", "vision", lambda: _clip("clip")),
    Architecture("siglip", "vision", lambda: _clip("siglip")),
    Architecture("segformer", "vision", _segformer),
    Architecture("detr", "vision", _detr),
    Architecture("sam", "vision", _sam),
)
_AUDIO = (
    _of("audio", sounds, "wav2vec2", **_SPEECH),
    _of("audio", sounds, "hubert", **_SPEECH),
    _of("audio", sounds, "wavlm", **_SPEECH),
    _of("audio", sounds, "data2vec-audio", **_SPEECH),
    Architecture("whisper", "audio", _whisper),
    Architecture("dac", "audio", _dac),
)
_DIFFUSION = (
    Architecture("UNet2DModel", "diffusion", _unet),
    Architecture("UNet2DConditionModel", "diffusion", _conditioned_unet),
    Architecture("AutoencoderKL", "diffusion", _autoencoder),
    Architecture("DiTTransformer2DModel", "diffusion", _dit),
)

ARCHITECTURES = (*_LANGUAGE, *_VISION, *_AUDIO, *_DIFFUSION)
