"""A real notebook, run by its own kernel: progress, what a result shows, and its picture."""

import nbclient
import nbformat
import pytest

CELLS = (
    """
    import lexrl
    algorithm = lexrl.QLearning(alpha=0.1)
    order = "min cost > max reward"
    result = lexrl.train(algorithm, "grid-nav", order, seeds=2, total_timesteps=20_000, num_log_points=4)
    result
    """,
    "result.plot()",
    "result.policies[0].predict(0)",
)


@pytest.fixture(scope="module")
def outputs():
    cells = [nbformat.v4.new_code_cell("\n".join(line.strip() for line in cell.splitlines())) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells]


def test_progress_is_renewed_in_one_place(outputs):
    """The title, one place whose last content is the end, and the result."""
    shown = [output.data["text/html"] for output in outputs[0] if output.output_type == "display_data"]
    boards = [html for html in shown if "1. min cost" in html]
    assert len(boards) == 1
    assert "100 %" in boards[0]
    assert not [html for html in shown if "compiling" in html]


def test_nothing_is_written_as_an_error(outputs):
    assert not [output for cell in outputs for output in cell if output.get("name") == "stderr"]


def test_a_result_is_a_table(outputs):
    shown = outputs[0][-1].data["text/html"]
    assert "<table" in shown
    assert "min cost" in shown


def test_a_plot_is_a_picture(outputs):
    assert any("image/png" in output.data or "image/svg+xml" in output.data for output in outputs[1])


def test_predict_gives_an_action_and_a_state(outputs):
    assert outputs[2][-1].data["text/plain"].startswith("(")
