"""An option or input that the plugin refuses."""


class Refusal(SystemExit, ValueError):
    """The message gives the problem and the remedy in one line.

    fairseq's commands catch no exceptions, so the process ends with this line and status 1.
    """
