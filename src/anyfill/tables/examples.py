"""A small table with holes to begin with: made up here, so that no data need to be fetched."""

import numpy as np
import pandas as pd


def made_up_penguins(rows: int, *, seed: int = 0) -> pd.DataFrame:
    """Rows of a law with the means of the Palmer penguins (Horst, Hill and Gorman 2020), written down here.

    A species is drawn (44 % Adelie, 20 % Chinstrap, 36 % Gentoo), then an island where it lives, a sex and a year.
    Given species and sex the four measurements are normal around their means, correlated by 0.6 through how large the
    bird is. Then 3 % lose their sex and 1 % all four measurements.
    """
    draw = np.random.default_rng(seed)
    species, male = draw.choice(3, rows, p=(0.44, 0.20, 0.36)), draw.integers(2, size=rows)
    island = np.where(species == 0, draw.integers(3, size=rows), species - 1)
    large, own = draw.standard_normal((rows, 1)), draw.standard_normal((rows, 4))
    around = np.sqrt(0.6) * large + np.sqrt(0.4) * own
    values = np.round((np.array(_MEANS)[species, male] + around * _DEVIATIONS) / _STEPS) * _STEPS
    values[draw.random(rows) < 0.01] = np.nan
    sex = np.array(["female", "male"], dtype=object)[male]
    sex[draw.random(rows) < 0.03] = None
    return pd.DataFrame(
        {
            "species": np.array(["Adelie", "Chinstrap", "Gentoo"], dtype=object)[species],
            "island": np.array(["Dream", "Biscoe", "Torgersen"], dtype=object)[island],
            **{name: values[:, place].round(1) for place, name in enumerate(_MEASUREMENTS)},
            "sex": sex,
            "year": draw.integers(2007, 2010, size=rows),
        }
    )


_MEASUREMENTS = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
_MEANS = (  # Adelie, Chinstrap, Gentoo; of each female, then male
    ((37.3, 17.6, 188.0, 3370.0), (40.4, 19.1, 192.0, 4040.0)),
    ((46.6, 17.6, 192.0, 3530.0), (51.1, 19.3, 200.0, 3940.0)),
    ((45.6, 14.2, 213.0, 4680.0), (49.5, 15.7, 221.0, 5480.0)),
)
_DEVIATIONS = (2.2, 0.8, 5.6, 300.0)
_STEPS = (0.1, 0.1, 1.0, 25.0)
"""What the measurements are rounded to."""
