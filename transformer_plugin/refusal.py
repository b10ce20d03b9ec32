"""An option or input that the plugin refuses."""


class Refusal(SystemExit, ValueError):
    """The message says in one line what is wrong and what to do.

    fairseq's commands catch no exceptions: there it ends the process with this line and status 1.
    """
