"""From how many entries on Theorems VI and VII can show failure at all, without a search."""

from __future__ import annotations

from functools import lru_cache

from separatrix.theory.fails.many_proof import Sizes

_E_LN_2 = 1_884_169
"""e ln(2) in millionths, rounded down."""
_MOST = 16
"""Higher powers of an n_l, which is at least 1, are left out: deep stacks have enough of them."""


@lru_cache(maxsize=256)
def least_entries(ahead: int, s: Sizes, bits: int) -> int:
    """A number of entries of the last function, N_{L-1}, below which no parameters show failure if
    log N_{L-1} < `bits`; 0 where nothing is known, as where a layer reads fewer bits than that.

    lambda(V, b, y; c) <= b log(V/(y-1)): Lemma S bounds a probability, b balls may all fall into
    y-1 bins, and b! <= c^b ((b/c)!)^c. So (B_l) asks for U_l k_l > X_l with k_l = log(V_l/(Y_l-1)),
    (C) for the same with k_L = log N_{L-1}, and (A) for t k_1 > s with k_1 = log(m'/(y_1-1)); all
    k_l < `bits` <= h. As X_l >= h_j W no y is 1. Parts of the X_l, with H_l what a token of z_l
    reads, h what w reads, and y_1 <= Delta_1 x, Y_l <= Delta_l U_l, n_2 for g G, say:

      own    n_l k_{l+1} > 2^k_l Delta_l H_l (tokens of z_l),  g k_3 > 2^k_1 H_2
      reads  Delta_l k_{l+1} > h n_{l+1} .. n_{L-1} (w's),  y_1 k_2 > h x g n_3 .. n_{L-1}
      late   n_1 x k_2 > h_1 t >= h_1 x (VII: tokens of z_1);  n_1 k_2 > min(sigma_1, h_1) (VI)
      (A)    t k_1 > h_1 g n_1 n_3 .. n_{L-1} (VII)

    (with y in place of y-1 each 2^k_l is smaller by a factor, see below). All this put into N_{L-1}
    >= G m' n_1 g G n_3 .. n_{L-1} leaves bits that are read and powers of 2^k_l and 1/k_l, and
    2^(a k) / k^b >= (e ln(2) a/b)^b. Parts of one X_l share what is asked for: where they are put
    in p, q, .. times, there is a factor (p+q+..)^(p+q+..) / (p^p q^q ..) by their weighted means.
    """
    if bits > min(s.h):
        return 0
    # a small sigma_1 asks for less than n_1 >= 1 does
    return max(_product(ahead, s, bits, cached) for cached in (False, True))


def _product(ahead: int, s: Sizes, bits: int, cached: bool) -> int:
    L = s.readers + 1 - ahead
    levels = range(L + 1)
    own, reads, doubled, divided = ([0 for _ in levels] for _ in range(4))
    late = 0
    # how often n_2, n_3, .. stand in it: at first N_{L-1} >= 2^k_1 h x n_1 (n_2 .. n_{L-1})^2 / k_2
    power = [2 for _ in levels]
    h = s.h[ahead]
    H_2 = sum(s.h[: 1 + ahead])
    above, below = h, 1
    reads[2] = doubled[1] = divided[2] = 1
    if ahead:
        # x > h_1^2 g n_3 .. n_{L-1} / (k_1 k_2), n_1 > h_1 / k_2 and g > 2^k_1 H_2 / k_3
        above *= s.h[0] ** 3 * H_2
        late = 2
        own[3] = divided[1] = divided[3] = 1
        doubled[1] += 1
        divided[2] += 2
        power[3:] = [3 for _ in power[3:]]
    elif cached and s.sigma[1]:
        above *= min(s.sigma[1], s.h[0])
        late = 1
        divided[2] += 1
    for level in range(2, L):
        known = level - 1 + ahead
        times = min(power[level], _MOST)
        above *= (sum(s.h[:known]) * s.h[known]) ** times
        own[level + 1] += times
        reads[level + 1] += times
        doubled[level] += times
        divided[level + 1] += 2 * times
        power[level + 1 :] = [more + times for more in power[level + 1 :]]
    for level in levels[2:]:
        uses = (own[level], reads[level], late if level == 2 else 0)
        above *= sum(uses) ** sum(uses)
        for used in uses:
            below *= used**used
    for level in levels[1:L]:
        above *= (_E_LN_2 * doubled[level]) ** divided[level]
        below *= (1_000_000 * divided[level]) ** divided[level]
    # y and all Y_l are more than h g / k_2, and g at least 1 and H_2 / (2 k_3)
    y = max(2, h * max(2 * bits, H_2) // (2 * bits * bits) + 1)
    above *= (y - 1) ** sum(doubled)
    below *= y ** sum(doubled) * bits ** divided[L]
    return above // below
