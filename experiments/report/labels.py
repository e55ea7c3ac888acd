"""Places the labels of points so that they overlap neither each other nor the points."""

import math


def place(points, sizes, bounds, obstacles):
    """Returns the lower left corner of each label, chosen near its point.

    POINTS are the labelled points, SIZES the widths and heights of their labels, BOUNDS the rectangle (left, bottom, right, top)
    of all labels, and OBSTACLES further rectangles, all in pixels. The line from a point to its label crosses no label if that is
    possible. A label without a free place is put above its point.
    """
    corners = [None] * len(points)
    boxes, lines = list(obstacles), []
    for i in sorted(range(len(points)), key=lambda index: points[index]):
        free = [box for box in _candidates(points[i], sizes[i]) if _inside(box, bounds) and not any(_overlap(box, other) for other in boxes)]
        clear = (box for box in free if not any(_crosses(line, box) for line in lines)
                 and not any(_crosses(leader(points[i], box), other) for other in boxes[len(obstacles):]))
        best = next(clear, None) or next(iter(free), None) or next(_candidates(points[i], sizes[i]))
        corners[i] = best[:2]
        boxes.append(best)
        lines.append(leader(points[i], best))
    return corners


def _candidates(point, size):
    """Yields rectangles around POINT, the nearest first."""
    for distance in (7, 12, 18, 26, 36, 48, 62, 78, 96, 116, 138, 162):
        for turn in range(24):
            angle = math.pi / 2 + (turn + 1) // 2 * (1 if turn % 2 else -1) * math.pi / 12
            x, y = math.cos(angle), math.sin(angle)
            center = (point[0] + x * (distance + size[0] / 2), point[1] + y * (distance + size[1] / 2))
            yield (center[0] - size[0] / 2, center[1] - size[1] / 2, center[0] + size[0] / 2, center[1] + size[1] / 2)


def leader(point, box):
    """Returns the line from POINT to the nearest point of BOX."""
    return point, (min(max(point[0], box[0]), box[2]), min(max(point[1], box[1]), box[3]))


def _inside(box, bounds):
    return box[0] >= bounds[0] and box[1] >= bounds[1] and box[2] <= bounds[2] and box[3] <= bounds[3]


def _overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _crosses(line, box):
    """Returns True if LINE, two points, passes through BOX."""
    steps = max(2, int(math.dist(*line) / 2))
    return any(box[0] < line[0][0] + (line[1][0] - line[0][0]) * i / steps < box[2] and
               box[1] < line[0][1] + (line[1][1] - line[0][1]) * i / steps < box[3] for i in range(steps + 1))
