"""What looks like a credential is not shown. The examples are put together here, so that no
scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import json
import random
import string
import time

import pytest
from hypothesis import given, settings, strategies as st

from bot.kernel.outside_text import fence
from bot.kernel.redaction import REDACTED, redact
from bot.kernel.report import Claim, NeedsInfo
from bot.report.comment import comment
from tests.unit.test_hostile_outgoing import golden, poisoned

WORDS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
CHANCE = random.Random(7)


def some(count: int, letters: str = WORDS) -> str:
    """Letters that hold a capital, a small one and a digit, as nearly every real credential
    does.
    """
    return "".join(CHANCE.choice(letters) for _ in range(count - 3)) + (
        "a1f" if letters == HEX else "aZ9"
    )


def b64(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def block(kind: str) -> str:
    lines = "\n".join(some(64) for _ in range(3))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----"


# name: (text before the secret, the secret, text after)
SECRETS: dict[str, tuple[str, str, str]] = {
    "github classic": ("token ", "gh" + "p_" + some(36), ""),
    "github oauth": ("", "gh" + "o_" + some(36), ""),
    "github user": ("", "gh" + "u_" + some(36), ""),
    "github installation": ("x-access-token:", "gh" + "s_" + some(36), "@github.com"),
    "github refresh": ("", "gh" + "r_" + some(76), ""),
    "github fine-grained": ("", "github" + "_pat_" + some(22) + "_" + some(59), ""),
    "gitlab": ("", "glp" + "at-" + some(20), ""),
    "openai": ("OPENAI_API_KEY=", "s" + "k-" + some(48), ""),
    "openai project": ("'", "s" + "k-proj-" + some(20) + "-" + some(30) + "_" + some(20), "'"),
    "anthropic": ("", "s" + "k-ant-api03-" + some(90), ""),
    "hugging face": ("token=", "h" + "f_" + some(34), ""),
    "hugging face organisation": ("", "api" + "_org_" + some(34), ""),
    "weights and biases": ("WANDB_API_KEY=", some(40, HEX), ""),
    "wandb login": ("wandb login ", some(40, HEX), ""),
    "aws id": (
        "",
        "AK" + "IA" + some(16, string.ascii_uppercase + "234567").upper().replace("9", "2"),
        "",
    ),
    "aws secret": ("aws_secret_access_key = ", some(30) + "/" + some(9), ""),
    "google key": ("", "AI" + "za" + some(35), ""),
    "google oauth": ("", "ya" + "29." + some(60), ""),
    "google client": ("", "GOC" + "SPX-" + some(28), ""),
    "azure storage": (
        "AccountName=x;AccountKey=",
        some(86) + "==",
        ";EndpointSuffix=core.windows.net",
    ),
    "azure signature": (
        "https://x.blob.core.windows.net/a?sv=2022&sig=",
        some(43) + "%3D",
        "&se=1",
    ),
    "presigned": ("https://x.s3.amazonaws.com/a?X-Amz-Signature=", some(64, HEX), ""),
    "slack": ("", "xo" + "xb-" + some(12, string.digits + "aZ9") + "-" + some(24), ""),
    "slack hook": (
        "https://hooks.slack.com/services/",
        "T" + some(8) + "/B" + some(8) + "/" + some(24),
        "",
    ),
    "discord hook": ("https://discord.com/api/webhooks/123456789012345678/", some(68), ""),
    "stripe": ("", "sk" + "_live_" + some(24), ""),
    "stripe restricted": ("", "rk" + "_live_" + some(24), ""),
    "pypi": ("", "py" + "pi-" + some(120), ""),
    "npm": ("", "np" + "m_" + some(36), ""),
    "databricks": ("", "da" + "pi" + some(32, HEX), ""),
    "digitalocean": ("", "dop" + "_v1_" + some(64, HEX), ""),
    "sendgrid": ("", "S" + "G." + some(22) + "." + some(43), ""),
    "telegram": ("", "123456789:A" + "A" + some(33), ""),
    "docker": ("", "dck" + "r_pat_" + some(27), ""),
    "replicate": ("", "r" + "8_" + some(37), ""),
    "groq": ("", "gs" + "k_" + some(52), ""),
    "nvidia": ("", "nv" + "api-" + some(64), ""),
    "jwt": (
        "",
        b64({"alg": "HS256", "typ": "JWT"})
        + "."
        + b64({"sub": "12345", "name": "x"})
        + "."
        + some(43),
        "",
    ),
    "bearer": ("Authorization: Bearer ", some(40), ""),
    "basic": ("authorization: Basic ", base64.b64encode(b"user:hunter2hunter2").decode(), ""),
    "rsa key": ("", block("RSA PRIVATE " + "KEY"), ""),
    "plain key": ("", block("PRIVATE " + "KEY"), ""),
    "openssh key": ("", block("OPENSSH PRIVATE " + "KEY"), ""),
    "pgp key": ("", block("PGP PRIVATE " + "KEY BLOCK"), ""),
    "key cut off": ("", "-----BEGIN EC PRIVATE " + "KEY-----\n" + some(64), ""),
    "key in one line": ('"private_key": "', block("PRIVATE " + "KEY").replace("\n", "\\n"), '"'),
    "password in an address": ("postgresql://user:", "hunter2" + some(5), "@db.example/x"),
    "password with signs": ("https://user:", "p@ss:" + some(8), "@host.example/x"),
    "password without user": ("redis://:", some(12), "@host:6379/0"),
    "token as user": ("git clone https://", some(40, HEX), "@git.example/a/b.git"),
    "token in a query": ("https://host.example/x?access_token=", some(32), "&y=1"),
    "assigned key": ('api_key = "', some(32), '"'),
    "assigned in yaml": ("client_secret: ", some(32), ""),
    "assigned in json": ('{"apiKey": "', some(32), '"}'),
    "kaggle": ('{"username":"me","key":"', some(32, HEX), '"}'),
    "environment": ("export DB_PASSWORD=", "hunter2" + some(6), ""),
    "password argument": ("mysql --password=", "hunter2" + some(6), " x"),
    "comet": ("COMET_API_KEY=", some(25), ""),
    "netrc": ("machine api.wandb.ai\n  login user\n  password ", some(40, HEX), ""),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_credential_goes_and_its_surroundings_stay(name: str) -> None:
    before, secret, after = SECRETS[name]
    said = redact(f"The log says: {before}{secret}{after}\nand goes on.")
    assert REDACTED in said
    assert said.startswith("The log says:")
    assert said.endswith("and goes on.") or "cut off" in name
    for start in range(0, len(secret) - 8, 4):
        assert secret[start : start + 8] not in said, said


@pytest.mark.parametrize("name", SECRETS)
def test_no_credential_is_left_in_a_comment(name: str) -> None:
    before, secret, after = SECRETS[name]
    body = comment(poisoned("reproduced", f"{before}{secret}{after}"), run="acme-pool-41")
    core = max(secret.replace("\\n", "\n").split("\n"), key=len)
    assert core[4:16] not in body.replace("&#8203;", "")


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(SECRETS)),
    st.integers(1, 400),
    st.sampled_from(["\u200b", "\x1b[0m", "\u2060", "\ufeff", ""]),
)
def test_neither_cutting_nor_splitting_lets_one_through(name: str, room: int, inside: str) -> None:
    """A text is clipped after it was searched; something invisible within hides nothing."""
    before, secret, after = SECRETS[name]
    split = secret[:6] + inside + secret[6:]
    data, _ = golden("needs_info")
    report = poisoned("needs_info", "", lambda _: False)
    said = f"{'x ' * room}{before}{split}{after}"
    body = comment(
        report.model_copy(
            update={
                "verdict": NeedsInfo(reason=said, items=(said,)),
                "claims": (Claim(text=said, holds=None),),
            }
        )
    )
    core = max(secret.replace("\\n", "\n").split("\n"), key=len)
    assert core[6:16] not in body.replace("&#8203;", "")
    assert data["verdict"]["kind"] == "needs_info"


@pytest.mark.parametrize(
    "text",
    [
        "model.generate(max_new_tokens=128, pad_token_id=tokenizer.eos_token_id)",
        "tokenizer.pad_token = tokenizer.eos_token  # '<|endoftext|>'",
        "AutoModel.from_pretrained(name, token=os.environ['HF_TOKEN'], use_auth_token=True)",
        "key = torch.randn(2, 8, 16); query = key.clone(); key=key.transpose(1, 2)",
        "q, k, v = self.query(x), self.key(x), self.value(x)",
        "num_key_value_heads: 8, key_padding_mask=None, attention_key: encoder.layer.11.attention.self.key.weight",
        "api_key=None", "password=getpass.getpass()", "secret = input()", 'api_key = "YOUR_API_KEY"', "token: <your token here>",
        "jax.random.PRNGKey(0); key = jax.random.split(key)[0]; rng_key=jax.random.key(1234567890)",
        "missing keys: encoder.layers.0.self_attn.in_proj_weight, decoder.token_embedding.weight",
        "commit 0123456789abcdef0123456789abcdef01234567", "sha256:" + "0a" * 32,
        "https://huggingface.co/bert-base-uncased/resolve/main/config.json?download=true",
        "git@github.com:acme/pool.git", "ssh://git@github.com/acme/pool", "tensor([0.1234, 5.6789], device='cuda:0')", "sk-learn hf_hub_download npm_config",
        "File \"/a/site-packages/torch/nn/modules/module.py\", line 1511, in _wrapped_call_impl", "SG.train and r8_block and gsk_x", "basic tokenization of sentences",
    ],
)  # fmt: skip
def test_what_reports_of_this_field_say_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        "a" * 40 + "1",
        "api_key=",
        "password: ",
        "://a:b",
        "://:",
        'key": "',
        "SG.",
        "aA1/",
        "hooks.slack.com/services/T",
        "sig=",
        "-----BEGIN ",
    ],
)
def test_searching_costs_no_quadratic_time(piece: str) -> None:
    started = time.process_time()
    fence(redact((piece * 65_536)[:65_536]))
    assert time.process_time() - started < 10
