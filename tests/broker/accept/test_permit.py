"""A permit is given back once."""

from broker.accept.permit import Permit


def test_however_often_it_is_given_back_its_function_is_called_once():
    called = []
    permit = Permit(called.append, "back")
    permit.give_back()
    permit.give_back()
    assert called == ["back"]


def test_it_has_ended_before_its_function_is_called():
    called = []

    def back():
        called.append("back")
        permit.give_back()

    permit = Permit(back)
    permit.give_back()
    assert called == ["back"]
