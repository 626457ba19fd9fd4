"""The Betting Game: ten bets with a favourable coin and a rare jackpot."""

from typing import Any

from prudent.domains.registry import domain
from prudent.errors import whole_number
from prudent.models.build import build
from prudent.models.ssp import SSP

BETS = range(6)
WIN, LOSE, JACKPOT = 0.7, 0.25, 0.05
JACKPOT_PAYS = 10


@domain("Betting Game", parts=("bets made", "money"), action="bet", drawn="heat")
def betting_game(stages: int = 10, money: int = 5, cap: int = 100) -> SSP:
    """Return the Betting Game of Rigter et al. (2022), adapted there from Bäuerle and Ott (2011).

    A state is ``(stage, money)``; an action is the bet, from 0 to 5 and at most the money.  The bet is won with
    probability 0.7 and lost with probability 0.25; with probability 0.05 the jackpot pays ten times the bet.  Money
    stays between 0 and ``cap``.  After the last stage the only action, ``"stop"``, costs ``cap - money`` and leads to
    the goal ``"end"``.

    Parameters
    ----------
    stages : int
        The number of bets.
    money : int
        The money at the start.
    cap : int
        The largest amount of money.

    Examples
    --------
    >>> import prudent
    >>> prudent.domains.betting_game()
    <SSP betting-game: 892 states, 4,706 actions, 12,190 outcomes>
    """
    stages = whole_number("stages", stages, 1)
    cap = whole_number("cap", cap, 0)
    money = whole_number("money", money, 0, cap)

    def actions(state: Any) -> dict[Any, Any]:
        if state == "end":
            return {}
        stage, money = state
        if stage == stages:
            return {"stop": [(1.0, "end", cap - money)]}

        def after(gain: int) -> tuple[Any, int]:
            return (stage + 1, min(max(money + gain, 0), cap)), 0

        return {
            bet: [(WIN, *after(bet)), (LOSE, *after(-bet)), (JACKPOT, *after(JACKPOT_PAYS * bet))]
            for bet in BETS
            if bet <= money
        }

    return build((0, money), actions, goals=["end"], name="betting-game")
