import pytest
from sklearn.base import BaseEstimator, clone

from gnomon.progress import CallbackSupportMixin, Steps, with_callbacks


class Iterating(CallbackSupportMixin, BaseEstimator):
    """Counts to `n_iter`, unless told to stop or made to fail."""

    def __init__(self, n_iter=3, fail_at=None, total=True):
        self.n_iter = n_iter
        self.fail_at = fail_at
        self.total = total

    @with_callbacks
    def fit(self, X=None, y=None):
        self.n_iter_ = 0
        with Steps(self, total=self.n_iter if self.total else None, name="round") as steps:
            for i in range(self.n_iter):
                if i % 2:  # begun by hand, or by `done`
                    steps.begin()
                if i == self.fail_at:
                    raise ArithmeticError("on purpose")
                self.n_iter_ += 1
                if steps.done(loss=1.0 / (i + 1)):
                    break
        return self


class Listener:
    """Writes down what it hears; asks to stop at the step given."""

    def __init__(self, stop_at=None):
        self.stop_at = stop_at
        self.heard = []

    def setup(self, estimator, context):
        self.heard.append("setup")

    def teardown(self, estimator, context):
        self.heard.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, metadata=None):
        self.heard.append(("end", context.task_name, context.task_id, metadata))
        return context.task_name == "round" and context.task_id == self.stop_at


def fit(listener, **parameters):
    return Iterating(**parameters).set_callbacks(listener).fit()


def test_every_step_is_told_in_order_with_its_number_and_numbers():
    listener = Listener()
    fit(listener, n_iter=3)
    rounds = [entry for entry in listener.heard if entry[1] == "round"]
    assert [(what, number) for what, _, number, *_ in rounds] == [
        ("begin", 0),
        ("end", 0),
        ("begin", 1),
        ("end", 1),
        ("begin", 2),
        ("end", 2),
    ]
    told = [entry[3] for entry in rounds if entry[0] == "end"]
    assert told == [{"loss": 1.0}, {"loss": 0.5}, {"loss": 1 / 3}]


def test_the_fit_stands_around_its_steps():
    listener = Listener()
    fit(listener, n_iter=2)
    heard = listener.heard
    assert (heard[0], heard[-1]) == ("setup", "teardown")
    assert heard[1][:2] == ("begin", "fit")
    assert heard[-2][:2] == ("end", "fit")


@pytest.mark.parametrize("total", [True, False])
def test_the_number_of_steps_may_be_known_or_not(total):
    listener = Listener()
    assert fit(listener, n_iter=4, total=total).n_iter_ == 4


def test_a_callback_can_stop_the_fit():
    listener = Listener(stop_at=1)
    assert fit(listener, n_iter=9).n_iter_ == 2
    assert listener.heard[-1] == "teardown"
    assert listener.heard[-2][:2] == ("end", "fit")


def test_one_of_two_callbacks_is_enough_to_stop():
    quiet, strict = Listener(), Listener(stop_at=0)
    model = Iterating(5).set_callbacks(quiet, strict).fit()
    assert model.n_iter_ == 1


def test_an_error_reaches_the_user_and_callbacks_are_torn_down():
    listener = Listener()
    with pytest.raises(ArithmeticError, match="on purpose"):
        fit(listener, n_iter=5, fail_at=3)
    assert listener.heard[-1] == "teardown"
    assert ("end", "fit") not in [entry[:2] for entry in listener.heard]


def test_without_callbacks_nothing_is_told_and_nothing_stops():
    assert Iterating(5).fit().n_iter_ == 5


def test_a_second_fit_is_told_from_its_beginning():
    listener = Listener()
    model = Iterating(2).set_callbacks(listener).fit()
    once = list(listener.heard)
    model.fit()
    assert listener.heard == once * 2


def test_a_clone_keeps_its_parameters():
    model = Iterating(7).set_callbacks(Listener())
    assert clone(model).get_params() == model.get_params()
