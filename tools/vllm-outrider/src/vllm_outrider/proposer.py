"""What vLLM calls."""

import logging

from vllm_outrider import vocabulary
from vllm_outrider.drafting import Drafting
from vllm_outrider.settings import BadSettings, Settings

log = logging.getLogger("vllm.plugins.outrider")


class OutriderProposer:
    """A proposer of vLLM (method `custom_class`) whose draft tokens come from an Outrider drafter.

    Wrong settings are an error when vLLM starts. From then on nothing is: without a drafter, or in time, there are no
    draft tokens, and vLLM decodes as it does without speculation.
    """

    def __init__(self, vllm_config):
        given = getattr(vllm_config, "additional_config", None)
        if not isinstance(given, dict) or "outrider" not in given:
            raise BadSettings("""outrider: missing, expected --additional-config '{"outrider": {"url": ...}}'""")
        settings = Settings.of(given["outrider"])
        self.most = vllm_config.speculative_config.num_speculative_tokens
        self.longest = vllm_config.model_config.max_model_len
        self.drafting = Drafting(settings, vocabulary.of_model(vllm_config.model_config))
        self.has_failed = False

    def load_model(self, *_args, **_kwargs):
        """There is nothing to load: the model is at the drafter."""

    def propose(self, sampled_token_ids, num_tokens_no_spec, token_ids_cpu, *_args, **_kwargs):
        """Draft tokens for each row of the batch; a row may have none.

        `sampled_token_ids` are the tokens that the step gave each row, none where a prompt is not read to its end;
        `token_ids_cpu` has all of the row's tokens, those included, and `num_tokens_no_spec` their number.
        """
        drafts = [[] for _ in sampled_token_ids]
        try:
            if not is_first_rank():
                return drafts
            rows = {}
            for row, sampled in enumerate(sampled_token_ids):
                length = int(num_tokens_no_spec[row])
                if len(sampled) and 0 < length < self.longest:
                    rows[row] = token_ids_cpu[row, :length].copy()
            if rows:
                for row, found in self.drafting.drafts(rows, self.most).items():
                    drafts[row] = found[: self.longest - len(rows[row])]
        except Exception as error:  # noqa: BLE001
            # It would end the server.
            if not self.has_failed:
                log.warning("no draft tokens: %s: %s", type(error).__name__, error)
            self.has_failed = True
            return [[] for _ in sampled_token_ids]
        return drafts


def is_first_rank():
    """Whether this worker's draft tokens are those that vLLM takes: of several that share a model only one asks."""
    try:
        from vllm.distributed.parallel_state import get_tp_group
    except ImportError:
        return True
    return get_tp_group().is_first_rank
