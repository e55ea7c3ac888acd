"""Checks that every use of a parameter in Python waits for its values, with a client whose values arrive when they are awaited."""

import copy
import io
import pickle
import re
import unittest

from tests.python import jobs  # noqa: F401  finds the package

import torch  # noqa: E402

from thinwire._client import RolledBack  # noqa: E402
from thinwire.parameters import ParameterValues  # noqa: E402

F = torch.nn.functional


class Arrivals:
    """A client: wait_tensor() writes the values of the present step into the replica."""

    def __init__(self, parameters):
        self.replicas = [torch.zeros(p.shape) for p in parameters]
        self.step = 0
        self.waits = []

    def wait_tensor(self, index):
        self.waits.append(index)
        self.replicas[index].fill_(self.step)


def values_of(model, **arguments):
    parameters = list(model.parameters())
    client = Arrivals(parameters)
    return client, ParameterValues(client, [name for name, _ in model.named_parameters()], parameters, client.replicas,
                                   **{"rejoin": lambda: None, **arguments})


def saved(model):
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    return torch.load(file)["weight"]


# Each returns a tensor or a number whose elements are the values of linear.weight.
USES = {
    "forward of the module": lambda linear: linear(torch.eye(2)).t(),
    "function": lambda linear: F.linear(torch.eye(2), linear.weight).t(),
    "function with keywords": lambda linear: F.linear(input=torch.eye(2), weight=linear.weight).t(),
    "operator": lambda linear: linear.weight * 1,
    "operator from the right": lambda linear: 1 * linear.weight,
    "a list": lambda linear: torch.stack([linear.weight, linear.weight])[1],
    "a list in a list": lambda linear: torch.block_diag(*[linear.weight])[:2, :2],
    "matrix product": lambda linear: torch.eye(2) @ linear.weight,
    "data": lambda linear: linear.weight.data,
    "detach": lambda linear: linear.weight.detach(),
    "clone": lambda linear: linear.weight.clone(),
    "numpy": lambda linear: torch.from_numpy(linear.weight.detach().numpy()),
    "tolist": lambda linear: torch.tensor(linear.weight.tolist()),
    "item": lambda linear: linear.weight[0, 0].item(),
    "the text": lambda linear: float(re.search(r"tensor\(\[\[(\d\.)", str(linear.weight))[1]),
    "a loop": lambda linear: torch.stack(list(linear.weight)),
    "view": lambda linear: linear.weight.view(-1),
    "transposed": lambda linear: linear.weight.T,
    "in place": lambda linear: linear.weight.data.mul_(1),
    "data_ptr": lambda linear: (linear.weight.data_ptr(), linear.weight.data)[1],
    "state_dict": lambda linear: linear.state_dict()["weight"],
    "torch.save": saved,
    "pickle": lambda linear: pickle.loads(pickle.dumps(linear.weight)),
    "deepcopy of the parameter": lambda linear: copy.deepcopy(linear.weight),
    "deepcopy of the model": lambda linear: copy.deepcopy(linear).weight,
    "parameters_to_vector": lambda linear: torch.nn.utils.parameters_to_vector(linear.parameters()),
    "functional_call": lambda linear: functional_call()(linear, dict(linear.named_parameters()), (torch.eye(2),)).t(),
    "copy_": lambda linear: torch.empty(2, 2).copy_(linear.weight.detach()),
    "out of a function": lambda linear: torch.add(linear.weight.detach(), 0, out=torch.empty(2, 2)),
    "autocast": lambda linear: in_bf16(linear),
    "no_grad": lambda linear: without_grad(linear),
    "norm": lambda linear: linear.weight.norm() / 2,
    "conversion": lambda linear: linear.weight.double().float(),
    "another type of model": lambda linear: copy.deepcopy(linear).double().weight.float(),
}


def functional_call():
    try:
        return torch.func.functional_call
    except AttributeError:  # PyTorch 1.13
        return torch.nn.utils.stateless.functional_call


def in_bf16(linear):
    with torch.autocast("cpu", torch.bfloat16):
        return linear(torch.eye(2)).t().float()


def without_grad(linear):
    with torch.no_grad():
        return linear(torch.eye(2)).t()


def two_by_two():
    return torch.nn.Linear(2, 2, bias=False)


class PendingTest(unittest.TestCase):
    def test_every_use_waits_once_and_makes_the_parameter_ordinary(self):
        for name, use in USES.items():
            linear = two_by_two()
            weight = linear.weight
            client, values = values_of(linear)
            for client.step in (1, 2):
                client.waits.clear()
                values.begin_step(wait=False)
                self.assertIsNot(type(weight), torch.nn.Parameter)
                self.assertIsInstance(weight, torch.nn.Parameter)
                with self.subTest(use=name, step=client.step):
                    used = torch.as_tensor(use(linear))
                    self.assertTrue(torch.equal(used, torch.full_like(used, client.step)), used)
                    self.assertIs(type(weight), torch.nn.Parameter)
                    self.assertEqual(client.waits, [0])
                    use(linear)
                    self.assertEqual(client.waits, [0])

    def test_what_a_parameter_is_can_be_asked_before_its_values_arrive(self):
        linear = two_by_two()
        weight = linear.weight
        client, values = values_of(linear)
        values.begin_step(wait=False)
        self.assertEqual((weight.shape, weight.size(0), weight.dim(), weight.ndim, weight.numel(), weight.stride()),
                         ((2, 2), 2, 2, 2, 4, (2, 1)))
        self.assertEqual((weight.dtype, weight.device.type, weight.is_leaf, weight.requires_grad, weight.is_contiguous()),
                         (torch.float32, "cpu", True, True, True))
        weight.grad = torch.ones(2, 2)
        linear.zero_grad(set_to_none=True)
        torch.optim.SGD(linear.parameters(), lr=1).zero_grad(set_to_none=True)
        self.assertIsNone(weight.grad)
        self.assertEqual(client.waits, [])
        values.wait()
        self.assertEqual(client.waits, [0])

    def test_modules_that_read_the_parameters_of_others(self):
        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = torch.nn.Embedding(3, 4)
                self.layer = torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0, batch_first=True)  # never calls out_proj
                self.recurrent = torch.nn.LSTM(4, 4, batch_first=True)  # keeps a list of its parameters

            def forward(self, x):
                return F.linear(self.recurrent(self.layer(self.embed(x)))[0], self.embed.weight)

        for mode in ("train", "eval"):
            model, x = Tied(), torch.tensor([[0, 1, 2]])
            getattr(model, mode)()
            client, values = values_of(model)
            values.begin_step(wait=True)
            client.step = 1
            values.begin_step(wait=False)
            first = model(x)
            with self.subTest(mode=mode):
                self.assertEqual(sorted(client.waits), list(range(len(client.replicas))))
                self.assertTrue(torch.equal(first, model(x)))
                for p in model.parameters():
                    self.assertTrue(torch.equal(p, torch.ones_like(p)))
                    self.assertIs(type(p), torch.nn.Parameter)

    def test_a_forward_pass_waits_for_each_layer_when_it_begins(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 2))
        client, values = values_of(model)
        values.begin_step(wait=False)
        seen = []
        model[1].register_forward_hook(lambda *_: seen.extend(client.waits))
        model(torch.ones(1, 2)).sum().backward()
        self.assertEqual((seen, client.waits), ([0, 1], [0, 1, 2, 3]))
        self.assertTrue(all(p.grad is not None for p in model.parameters()))

    def test_parameters_with_values_of_their_own_are_copied_when_they_are_used(self):
        linear = two_by_two().bfloat16()
        client, values = values_of(linear)
        client.step = 3
        values.begin_step(wait=False)
        version = linear.weight._version
        self.assertTrue(torch.equal(linear.weight.float(), torch.full((2, 2), 3.0)))
        self.assertEqual(linear.weight._version, version)
        values.check_unchanged()

    def test_a_parameter_of_another_class_does_not_become_pending(self):
        class Named(torch.nn.Parameter):
            pass

        linear = torch.nn.Linear(2, 2)
        linear.weight = Named(torch.ones(2, 2))
        client, values = values_of(linear)
        values.begin_step(wait=False)
        self.assertIs(type(linear.weight), Named)
        self.assertEqual(client.waits, [0])

    def test_autograd_refuses_a_graph_of_an_earlier_step(self):
        linear = two_by_two()
        client, values = values_of(linear)
        values.begin_step(wait=False)
        loss = linear(torch.ones(1, 2, requires_grad=True)).sum()
        values.begin_step(wait=False)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            loss.backward()

    def test_a_rollback_makes_all_parameters_ordinary(self):
        model = torch.nn.Linear(2, 2)
        joined = []
        client, values = values_of(model, rejoin=lambda: joined.append([type(p) for p in model.parameters()]))
        values.begin_step(wait=False)

        def roll_back(index):
            raise RolledBack("earlier")

        client.wait_tensor = roll_back
        model(torch.ones(1, 2)).sum().backward()
        self.assertEqual(joined, [[torch.nn.Parameter] * 2])
        self.assertIs(type(model.bias), torch.nn.Parameter)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
