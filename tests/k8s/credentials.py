"""Makes the certificates and secrets of docs/kubernetes.md without a cluster."""

import pathlib
import re
import subprocess

FILES = ("ca.pem", "cert.pem", "key.pem")


def make_secrets(thinwire, folder):
    """Runs the `thinwire certs` commands of the page in a folder. Returns {secret: {key: content}}, as the page's kubectl commands
    would store them."""
    page = pathlib.Path("docs/kubernetes.md").read_text(encoding="utf-8")
    for command in re.findall(r"^thinwire (certs .*)$", page, re.MULTILINE):
        subprocess.run([thinwire, *command.split()], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    secrets = re.findall(r"^kubectl -n thinwire create secret generic (\S+) --from-file=(\S+)$", page, re.MULTILINE)
    return {name: {file: pathlib.Path(folder, path, file).read_bytes() for file in FILES} for name, path in secrets}


def secret_files(pod, secrets):
    """Returns {path: content} of the files in the volume `credentials` of a pod."""
    (volume,) = [volume for volume in pod["spec"]["volumes"] if volume["name"] == "credentials"]
    if "secret" in volume:
        return secrets[volume["secret"]["secretName"]]
    files = {}
    for source in volume["projected"]["sources"]:
        secret = secrets[source["secret"]["name"]]
        files |= {item["path"]: secret[item["key"]] for item in source["secret"]["items"]}
    return files
