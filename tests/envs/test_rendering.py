"""Pictures of states show what is there, and films keep what they are given."""

import io
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import lexrl
from lexrl import video
from lexrl.colors import BLUE, GREEN, INK, ORANGE, RED, WHITE, mix
from lexrl.envs import drawing
from lexrl.envs.cart_safe import State
from lexrl.errors import InputError


def where(frame, colour):
    """Rows and columns of the pixels of a colour."""
    return np.nonzero((frame == np.frombuffer(bytes.fromhex(colour[1:]), np.uint8)).all(axis=-1))


def centre(frame, colour):
    rows, columns = where(frame, colour)
    assert len(rows) > 20
    return rows.mean(), columns.mean()


def test_mixing_colours():
    assert mix(BLUE, 1.0) == BLUE.lower()
    assert mix(BLUE, 0.0) == WHITE.lower()
    assert mix("#000000", 0.5, "#204080") == "#102040"


@pytest.mark.parametrize(
    "world",
    [lexrl.CartSafe(effort_signal=True), lexrl.MountainCarSafe(), lexrl.GridNav.generate(), lexrl.GridNav.generate(60)],
)
def test_any_first_state_can_be_drawn(world):
    state, _ = world.reset(jax.random.key(0))
    frame = world.render(state)
    assert frame.dtype == np.uint8
    assert frame.shape[1:] == (600, 3)
    assert frame.shape[0] % 2 == 0
    assert 250 <= frame.shape[0] <= 600
    np.testing.assert_array_equal(frame, world.render(jax.device_get(state)))


class TestCart:
    @staticmethod
    def shown(place, angle):
        return lexrl.CartSafe().render(State(jnp.array([place, 0.0, angle, 0.0]), jnp.int32(0)))

    @pytest.mark.parametrize("place", [-0.9, 0.0, 0.4])
    def test_the_cart_is_at_its_place(self, place):
        _, column = centre(self.shown(place, np.pi / 2), BLUE)
        # From -2.8 to 2.8 in 600 columns; the pole covers a bit of the cart's right side.
        assert column == pytest.approx(300 + place * 600 / 5.6, abs=6)

    @pytest.mark.parametrize(("angle", "right", "up"), [(0, 0, 1), (np.pi / 2, 1, 0), (np.pi, 0, -1), (5.5, -0.7, 0.7)])
    def test_the_pole_points_where_it_should(self, angle, right, up):
        row, column = centre(self.shown(0.0, angle), ORANGE)
        middle = 278 / 2
        # The middle of the pole, half a unit away, and a little more for the ball at its end.
        assert column - 300 == pytest.approx(right * 62, abs=12)
        assert middle - row == pytest.approx(up * 62, abs=12)

    def test_beyond_the_line_the_cart_is_red(self):
        assert len(where(self.shown(1.1, 0.0), BLUE)[0]) == 0
        assert len(where(self.shown(-1.1, 0.0), RED)[0]) > 200
        assert len(where(self.shown(0.99, 0.0), RED)[0]) == 0

    def test_zones(self):
        frame = self.shown(0.0, np.pi)
        tints = [mix(RED, 0.13), mix(RED, 0.28)]
        columns = np.concatenate([where(frame[:100], tint)[1] for tint in tints])
        places = (columns + 0.5 - 300) * 5.6 / 600
        assert (np.abs(places) > 1.0).all()
        assert (np.abs(places) < 2.4).all()
        assert {-1, 1} == set(np.sign(places))


class TestHill:
    @staticmethod
    def shown(place, **settings):
        return lexrl.MountainCarSafe(**settings).render(np.array([place, 0.0]))

    def test_the_car_goes_right_and_up(self):
        spots = np.array([centre(self.shown(place), BLUE) for place in (-0.5, -0.2, 0.1, 0.4)])
        assert (np.diff(spots[:, 1]) > 60).all()
        assert (np.diff(spots[:, 0]) < -30).all()

    def test_beyond_the_wall_the_car_is_red(self):
        assert len(where(self.shown(-0.8), BLUE)[0]) == 0
        assert len(where(self.shown(-0.8), RED)[0]) > 200
        assert len(where(self.shown(-0.8, cost_boundary=-0.9), BLUE)[0]) > 200

    def test_the_zone_ends_at_the_wall(self):
        ends = [where(self.shown(0.0, cost_boundary=wall), mix(RED, 0.13))[1].max() for wall in (-1.0, -0.75)]
        assert ends == pytest.approx([(0.23) * 600 / 1.86, (0.48) * 600 / 1.86], abs=3)

    def test_the_flag_is_at_the_goal(self):
        assert where(self.shown(0.0), ORANGE)[1].min() == pytest.approx(1.68 * 600 / 1.86, abs=4)


class TestGrid:
    @pytest.mark.parametrize("cell", [0, 3, 12, 24])
    def test_everything_is_in_its_cell(self, cell):
        obstacles = np.zeros(25, bool)
        obstacles[[5, 12, 18]] = True
        goal = 2
        frame = drawing.grid(5, obstacles, goal, cell)
        pixels = 600 / 5.4

        def cells(colour):
            rows, columns = where(frame, colour)
            return set(((rows / pixels - 0.2).astype(int) * 5 + (columns / pixels - 0.2).astype(int)).tolist())

        assert cells(RED if cell == 12 else BLUE) == {cell}
        assert cells(BLUE if cell == 12 else RED) == set()
        assert cells(ORANGE) == {goal}
        assert cells(mix(INK, 0.75)) == {5, 12, 18}


def frames(n, height=20, width=30):
    """A white bar on green that moves one column a frame."""
    film = np.zeros((n, height, width, 3), np.uint8)
    film[:] = np.frombuffer(bytes.fromhex(GREEN[1:]), np.uint8)
    for i in range(n):
        film[i, :, i % width] = 255
    return film


class TestVideos:
    def test_a_png_is_the_frame(self):
        (frame,) = frames(1)
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(video.png(frame)))), frame)

    @pytest.mark.parametrize("fps", [50, 30, 7, 0.5])
    def test_a_gif_has_all_frames_and_its_pace(self, fps):
        given = frames(12)
        made = Image.open(io.BytesIO(video.gif(list(given), fps)))
        assert made.n_frames == 12
        assert made.info["loop"] == 0
        lasting = 0
        for i in range(12):
            made.seek(i)
            lasting += made.info["duration"]
            np.testing.assert_array_equal(np.asarray(made.convert("RGB")), given[i])
        assert lasting == pytest.approx(12_000 / fps, abs=6)

    def test_a_film_of_a_world_keeps_its_colours(self):
        given = [drawing.cart(place, 0.3, 1.0, 1.0, 2.4) for place in (-1.5, 0.0)]
        made = Image.open(io.BytesIO(video.gif(given, 10)))
        for i, frame in enumerate(given):
            made.seek(i)
            wrong = np.abs(np.asarray(made.convert("RGB"), int) - frame)
            assert wrong.mean() < 2
            assert np.quantile(wrong, 0.999) < 60

    def test_an_mp4_has_all_frames(self, tmp_path):
        ffmpeg = pytest.importorskip("imageio_ffmpeg")
        given = np.stack([drawing.hill(place, -1.2, 0.6, -0.75, 0.45)[:401, :599] for place in (-0.9, -0.5, 0.2)])
        (tmp_path / "film.mp4").write_bytes(video.mp4(given, 25))
        reader = ffmpeg.read_frames(str(tmp_path / "film.mp4"))
        facts = next(reader)
        assert facts["source_size"] == (600, 402)
        assert facts["fps"] == 25
        shown = [np.frombuffer(frame, np.uint8).reshape(402, 600, 3).astype(int) for frame in reader]
        assert len(shown) == 3
        for one, other in zip(shown, given, strict=True):
            assert np.abs(one[:401, :599] - other).mean() < 4
            # What was added to make the numbers even is a second last row and column.
            assert np.abs(one[401, :599] - other[400]).mean() < 8
            assert np.abs(one[:401, 599] - other[:, 598]).mean() < 8

    def test_without_ffmpeg_it_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
        with pytest.raises(InputError, match=r"pip install 'lexrl\[video\]'.*GIF"):
            video.mp4(frames(2), 10)

    @pytest.mark.parametrize("make", [video.gif, video.mp4])
    def test_complaints(self, make):
        with pytest.raises(InputError, match="at least one frame"):
            make([], 10)
        with pytest.raises(InputError, match=r"2 sizes; .* all of one size"):
            make([*frames(1), *frames(1, height=24)], 10)
        with pytest.raises(InputError, match=r"uint8; these are \[20, 30, 3\] of float64"):
            make(frames(2) / 255, 10)
        with pytest.raises(InputError, match="more than 0"):
            make(frames(2), 0)

    def test_a_gif_cannot_be_quicker_than_50(self):
        with pytest.raises(InputError, match=r"fps is 60; a GIF needs .* at most 50 frames per second"):
            video.gif(frames(2), 60)
