"""Makes the certificates and secrets of docs/kubernetes.md, and those of cert-manager, without a cluster."""

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
        secret = secrets[volume["secret"]["secretName"]]
        items = volume["secret"].get("items", [{"key": key, "path": key} for key in secret])
        return {item["path"]: secret[item["key"]] for item in items}
    files = {}
    for source in volume["projected"]["sources"]:
        secret = secrets[source["secret"]["name"]]
        files |= {item["path"]: secret[item["key"]] for item in source["secret"]["items"]}
    return files


def make_cert_manager_secrets(certificates, folder):
    """Makes the secrets of Certificate objects with openssl. Returns {secret: {key: content}}, as cert-manager would store them: a
    certificate without a subject has critical alternative names, and all secrets have the authority's certificate."""
    specs = [item["spec"] for item in certificates]
    (authority,) = [spec for spec in specs if spec.get("isCA")]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    openssl("req", "-x509", *key, "-subj", f"/CN={authority['commonName']}", "-days", "3650", "-keyout", "ca.key", "-out", "ca.crt",
            "-addext", "keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign")
    usages = {"digital signature": "digitalSignature", "server auth": "serverAuth", "client auth": "clientAuth"}
    secrets = {}
    for spec in specs:
        if spec is authority:
            continue
        names = [usages[usage] for usage in spec["usages"]]
        extensions = ["basicConstraints=critical,CA:FALSE", "keyUsage=critical," + names[0], "extendedKeyUsage=" + ",".join(names[1:]),
                      "subjectAltName=critical," + ",".join("DNS:" + name for name in spec["dnsNames"])]
        pathlib.Path(folder, "extensions").write_text("\n".join(extensions), encoding="utf-8")
        openssl("req", *key, "-subj", "/", "-keyout", "tls.key", "-out", "request")
        openssl("x509", "-req", "-in", "request", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "90",
                "-extfile", "extensions", "-out", "tls.crt")
        secrets[spec["secretName"]] = {file: pathlib.Path(folder, file).read_bytes() for file in ("ca.crt", "tls.crt", "tls.key")}
    return secrets
