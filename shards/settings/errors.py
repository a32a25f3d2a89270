"""A limit, a setting or a quota that can't be as asked for, and the base of all of Turnstile's errors."""


class TurnstileError(Exception):
    """Base of the errors below."""


class ConfigInvalid(TurnstileError):
    """A setting, quota or topic that can't be as asked for; `str()` is one sentence naming setting, value and rule.

    `rule` completes the sentence: "it must be ..." after a value, "is not a setting; ..." when `value` is None.
    `error` is the name of the Kafka error in the response.
    """

    def __init__(self, name: str, value: object, rule: str, *, error: str = "INVALID_CONFIG") -> None:
        sentence = f"{name} {rule}" if value is None else f"{name} cannot be {_quoted(value)}: {rule}"
        super().__init__(sentence if sentence.endswith((".", "?")) else sentence + ".")
        self.name = name
        self.value = value
        self.rule = rule
        self.error = error

    @classmethod
    def saying(cls, sentence: str, *, name: str = "", error: str = "INVALID_CONFIG") -> "ConfigInvalid":
        """A ConfigInvalid with a sentence of its own, such as Kafka's, word for word."""
        made = cls(name, None, sentence, error=error)
        made.args = (sentence,)
        return made


def _quoted(value: object) -> str:
    text = str(value)
    return repr(text if len(text) <= 200 else text[:200] + "...")
