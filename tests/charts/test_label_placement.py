from gnomon.charts.label_placement import Box, Spot, Wanted, around_point, beyond_tip, place

BOUNDS = Box(0, 0, 200, 100)


def test_the_first_free_place_is_taken():
    spots = [Spot(10, 50), Spot(10, 80)]
    assert place([Wanted(40, 10, spots)] * 2, BOUNDS) == spots


def test_a_label_without_room_is_left_out():
    assert place([Wanted(40, 10, [Spot(10, 50)])] * 2, BOUNDS)[1] is None
    assert place([Wanted(300, 10, [Spot(10, 50)])], BOUNDS) == [None]


def test_what_is_taken_stays_free_of_labels():
    assert place([Wanted(40, 10, [Spot(10, 50)])], BOUNDS, taken=[Box(20, 40, 30, 60)]) == [None]


def test_what_can_be_avoided_is():
    in_the_way = [Box(20, 45, 22, 47)]
    spots = [Spot(10, 50), Spot(10, 80)]
    assert place([Wanted(40, 10, spots)], BOUNDS, avoid=in_the_way) == [spots[1]]
    assert place([Wanted(40, 10, spots[:1])], BOUNDS, avoid=in_the_way) == [spots[0]]
    assert place([Wanted(40, 10, spots[:1])], BOUNDS, avoid=in_the_way * 9) == [None]


def test_no_two_of_many_labels_overlap():
    wanted = [Wanted(30, 10, beyond_tip(100, 50, 1, 0.1 * i, 10)) for i in range(20)]
    wanted += [Wanted(30, 10, around_point(50, 50, 10))] * 20
    placed = place(wanted, BOUNDS)
    boxes = [spot.box(30, 10) for spot in placed if spot is not None]
    assert len(boxes) > 8
    for i, box in enumerate(boxes):
        assert box.within(BOUNDS)
        assert not any(box.overlaps(other) for other in boxes[:i])


def test_a_name_stands_beyond_the_tip_of_its_arrow():
    right, left, up = (beyond_tip(50, 50, dx, dy, 10)[0] for dx, dy in ((1, 0), (-1, 0), (0, -1)))
    assert (right.anchor, left.anchor, up.anchor) == ("start", "end", "middle")
    assert right.x > 50 > left.x
    assert up.y < 50
