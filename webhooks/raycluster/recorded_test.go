package raycluster

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// script replaces the script of an init container in a recording.
const script = "<script>"

// differences returns the semantic differences of two objects as "path: old -> new". Elements of lists are compared by name, or by index
// without a name. A script in the old object equals any value.
func differences(path string, oldValue, newValue any) []string {
	switch o := oldValue.(type) {
	case map[string]any:
		n, ok := newValue.(map[string]any)
		if !ok {
			break
		}
		var lines []string
		all := maps.Clone(o)
		maps.Copy(all, n)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			lines = append(lines, differences(path+"."+name, o[name], n[name])...)
		}
		return lines
	case []any:
		if n, ok := newValue.([]any); ok && path != "" {
			return differences(path, byName(o), byName(n))
		}
	}
	if cmp.Equal(oldValue, newValue) || oldValue == any(script) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %v -> %v", path, oldValue, newValue)}
}

// byName returns the elements of a list by name, or by index without a name.
func byName(list []any) map[string]any {
	fields := map[string]any{}
	for i, entry := range list {
		key := fmt.Sprint(i)
		if name, ok := entry.(map[string]any)["name"].(string); ok {
			key = name
		}
		fields[key] = entry
	}
	return fields
}

// wrapScalars wraps the scalars in lists in objects, which are compared by index.
func wrapScalars(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, field := range value {
			out[name] = wrapScalars(field)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, entry := range value {
			if _, isObject := entry.(map[string]any); !isObject {
				entry = map[string]any{"": entry}
			}
			out[i] = wrapScalars(entry)
		}
		return out
	default:
		return value
	}
}

func recording(t *testing.T, name, file string) map[string]any {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "recorded", name, file))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(content))
}

// recordedSettings returns the settings of the recorded operator.
func recordedSettings(name string) Settings {
	s := onOpenShift().with(issuedByPod)
	s.Version = "UNKNOWN"
	s.OAuthProxyImage = "registry.redhat.io/openshift4/ose-oauth-proxy@sha256:1ea6a01bf3e63cdcf125c6064cbd4a4a270deaf0f157b3eabb78f60556840366"
	s.CertGeneratorImage = "registry.redhat.io/ubi9@sha256:770cf07083e1c85ae69c25181a205b7cdef63c11b794c89b3b487d4670b4c328"
	switch name {
	case "plain-ingress-no-mtls":
		return s.with(plain).with(withoutOAuth).with(withoutMTLS)
	case "suspended-two-worker-groups":
		return s.with(plain).with(withoutOAuth)
	}
	return s
}

// initContainerDifferences returns the differences of an init container from the recordings [R15] [R16].
func initContainerDifferences(pod, user string) []string {
	at := pod + ".initContainers.create-cert."
	lines := []string{
		at + "resources: <nil> -> map[limits:map[cpu:500m memory:128Mi] requests:map[cpu:20m memory:32Mi]]",
		at + "securityContext: <nil> -> map[allowPrivilegeEscalation:false capabilities:map[drop:[map[:ALL]]] readOnlyRootFilesystem:true" + user + " seccompProfile:map[type:RuntimeDefault]]",
	}
	return lines
}

const asRayUser = " runAsNonRoot:true runAsUser:1000"

// With IssuerPod, a new cluster differs from the recordings of the CodeFlare operator only in these fields. Each difference fixes a defect.
func TestRecordedInjectionsMatch(t *testing.T) {
	head, small, big := ".spec.headGroupSpec.template.spec", ".spec.workerGroupSpecs.0.template.spec", ".spec.workerGroupSpecs.1.template.spec"
	sidecar, cookie := head+".containers.oauth-proxy.", "valueFrom:map[secretKeyRef:map[key:cookie_secret name:board-oauth-config-69f83c01]]]"
	for name, want := range map[string][]string{
		"plain-ingress-no-mtls":       {},
		"suspended-two-worker-groups": slices.Concat(initContainerDifferences(head, asRayUser), initContainerDifferences(small, asRayUser), initContainerDifferences(big, asRayUser)),
		"openshift-oauth-mtls": slices.Concat([]string{
			sidecar + `args.6.: --cookie-secret=$(COOKIE_SECRET) -> --openshift-delegate-urls={"/":{"resource":"pods","namespace":"team2","verb":"get"}}`,
			sidecar + `args.7.: --openshift-delegate-urls={"/":{"resource":"pods","namespace":"team2","verb":"get"}} -> --openshift-sar={"resource":"pods","namespace":"team2","verb":"get"}`, // R10
			sidecar + "env.COOKIE_SECRET: map[name:COOKIE_SECRET " + cookie + " -> <nil>",
			sidecar + "env.OAUTH2_PROXY_COOKIE_SECRET: <nil> -> map[name:OAUTH2_PROXY_COOKIE_SECRET " + cookie,
			sidecar + "resources: <nil> -> map[limits:map[cpu:500m memory:256Mi] requests:map[cpu:20m memory:64Mi]]",                                                                                           // R15
			sidecar + "securityContext: <nil> -> map[allowPrivilegeEscalation:false capabilities:map[drop:[map[:ALL]]] readOnlyRootFilesystem:true runAsNonRoot:true seccompProfile:map[type:RuntimeDefault]]", // R15
			sidecar + "volumeMounts.oauth-proxy-token: <nil> -> map[mountPath:/var/run/secrets/kubernetes.io/serviceaccount name:oauth-proxy-token readOnly:true]",                                             // R30
		}, initContainerDifferences(head, ""), []string{
			head + ".volumes.oauth-proxy-token: <nil> -> map[name:oauth-proxy-token projected:map[sources:[map[serviceAccountToken:map[expirationSeconds:3600 path:token]] map[configMap:map[items:[map[key:ca.crt path:ca.crt]] name:kube-root-ca.crt]] map[downwardAPI:map[items:[map[fieldRef:map[fieldPath:metadata.namespace] path:namespace]]]]]]]", // R30
		}, initContainerDifferences(small, "")),
	} {
		t.Run(name, func(t *testing.T) {
			input, output := recording(t, name, "input.yaml"), recording(t, name, "output.yaml")
			got := applyDefaults(t, recordedSettings(name), input, nil)
			lines := differences("", wrapScalars(normalize(output)), wrapScalars(normalize(got)))
			// Fields that the schema of the CRD and the controller add are not compared.
			lines = slices.DeleteFunc(lines, func(line string) bool {
				return strings.HasPrefix(line, ".metadata.finalizers: ") || strings.Contains(line, "numOfHosts")
			})
			if diff := cmp.Diff(want, lines, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// By default the certificates come from Secrets: only these paths differ from those with IssuerPod.
func TestDefaultsDifferFromCodeFlareOperator(t *testing.T) {
	defaulted := func(s Settings) any {
		return wrapScalars(normalize(applyDefaults(t, s, recording(t, "openshift-oauth-mtls", "input.yaml"), nil)))
	}
	s := recordedSettings("openshift-oauth-mtls")
	var paths []string
	for _, line := range differences("", defaulted(s), defaulted(s.with(func(s *Settings) { s.Certificates = "" }))) {
		paths = append(paths, strings.SplitN(line, ": ", 2)[0])
	}
	var want []string
	for _, pod := range []string{".spec.headGroupSpec.template.spec", ".spec.workerGroupSpecs.0.template.spec"} {
		for _, path := range []string{
			".containers.CONTAINER.volumeMounts.server-cert.readOnly", ".initContainers.create-cert.command.2.", ".initContainers.create-cert.env",
			".initContainers.create-cert.volumeMounts.server-cert.readOnly", ".volumes.ca-vol.secret.items", ".volumes.server-cert.secret",
		} {
			container := "ray-head"
			if strings.Contains(pod, "worker") {
				container = "ray-worker"
			}
			want = append(want, pod+strings.Replace(path, "CONTAINER", container, 1))
		}
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// signCommand returns the command of create-cert in the CodeFlare operator (project-codeflare 7fc158c, opendatahub-io fb0d403), which the
// recordings mask, with the names that only a head signs. It does not use the code under test.
func signCommand(names string) []any {
	return []any{"sh", "-c", `cd /home/ray/workspace/tls && openssl req -nodes -newkey rsa:2048 -keyout server.key -out server.csr -subj '/CN=ray-head' && ` +
		`printf "authorityKeyIdentifier=keyid,issuer\nbasicConstraints=CA:FALSE\nsubjectAltName = @alt_names\n[alt_names]\n` +
		`DNS.1 = 127.0.0.1\nDNS.2 = localhost\nDNS.3 = ${FQ_RAY_IP}\nDNS.4 = $(awk 'END{print $1}' /etc/hosts)` + names + `">./domain.ext && ` +
		`cp /home/ray/workspace/ca/* . && ` +
		`openssl x509 -req -CA ca.crt -CAkey ca.key -in server.csr -out server.crt -days 365 -CAcreateserial -extfile domain.ext`}
}

// releases contains the additional names that heads sign: in releases of the CodeFlare operator since 1.0 with and without a domain, in
// older ones without and with a client route, and in early releases of this operator.
var releases = map[string]struct {
	names  string
	spaced bool
}{
	"both names":   {names: `\nDNS.5 = rayclient-NAME-NAMESPACE.old.example.com\nDNS.6 = NAME-head-svc.NAMESPACE.svc`},
	"no domain":    {names: `\nDNS.5 = rayclient-NAME-NAMESPACE.\nDNS.6 = NAME-head-svc.NAMESPACE.svc`},
	"the Service":  {names: `\nDNS.5 = NAME-head-svc.NAMESPACE.svc`},
	"the client":   {names: `\nDNS.5 = rayclient-NAME-NAMESPACE.old.example.com`},
	"with a space": {names: `\nDNS.5 = rayclient-NAME-NAMESPACE.old.example.com\nDNS.6 = NAME-head-svc.NAMESPACE.svc`, spaced: true},
}

// legacyNames replaces hashed names by legacy ones.
var legacyNames = strings.NewReplacer("board-oauth-proxy-e071e5f5", "board-oauth-proxy", "board-oauth-config-69f83c01", "board-oauth-config",
	"board-proxy-tls-secret-d240b567", "board-proxy-tls-secret", "board-ca-secret-3b57509c", "ca-secret-board", "paused-ca-secret-5691ab36", "ca-secret-paused")

// storedRecording returns a recording as stored in the cluster, with the command of a release, and with legacy names if legacy is set.
func storedRecording(t *testing.T, name string, legacy bool, release string) map[string]any {
	t.Helper()
	object := recording(t, name, "output.yaml")
	c := raycluster.View(object)
	if legacy {
		put(nil, "metadata", "annotations", raycluster.AnnotationVersion)(object)
		object = parse(t, legacyNames.Replace(string(mustMarshal(t, object))))
	}
	for _, pod := range [][]string{headPod, worker0, worker1} {
		certificate := find(listAt(object, in(pod, "initContainers")...), raycluster.InitCertificate)
		if certificate == nil {
			continue
		}
		certificate["command"] = signCommand("")
		if slices.Equal(pod, headPod) {
			certificate["command"] = signCommand(strings.NewReplacer("NAMESPACE", c.Namespace(), "NAME", c.Name()).Replace(releases[release].names))
		}
		if command := listAt(certificate, "command"); releases[release].spaced {
			command[2] = strings.Replace(command[2].(string), `">`, `" >`, 1)
		}
	}
	return object
}

// R34, R8, [raycluster-20]: injections of any release of the CodeFlare operator are accepted and kept, with another domain and other images,
// until the user changes a template; similar elements of other clients are replaced.
func TestLegacyClustersAreKeptUntilTheTemplateChanges(t *testing.T) {
	for _, name := range []string{"openshift-oauth-mtls", "suspended-two-worker-groups"} {
		for naming, legacy := range map[string]bool{"hashed": false, "legacy": true} {
			for release := range releases {
				t.Run(naming+" "+name+" "+release, func(t *testing.T) {
					s := recordedSettings(name).with(newRelease).with(func(s *Settings) { s.Certificates = config.CertificatesByOperator })
					expectKeptUntilChanged(t, s, storedRecording(t, name, legacy, release), legacy)
				})
			}
		}
	}
}

func expectKeptUntilChanged(t *testing.T, s Settings, stored map[string]any, legacy bool) {
	t.Helper()
	expectAllowed(t, s, stored, stored) // without the mutating webhook
	labeled := copyOf(stored, put("x", "metadata", "labels", "a"))
	if diff := cmp.Diff(labeled, applyDefaults(t, s, labeled, stored)); diff != "" {
		t.Errorf("an update of labels changed the injections (-want +got):\n%s", diff)
	}
	expectAllowed(t, s, labeled, stored)
	changed := applyDefaults(t, s, copyOf(stored, put("example.com/ray:2", in(headPod, "containers", "0", "image")...)), stored)
	expectAllowed(t, s, changed, stored)
	certificate := find(listAt(changed, in(headPod, "initContainers")...), raycluster.InitCertificate)
	if certificate["image"] != "example.com/ubi:9" || !raycluster.View(changed).Injected().PodIssued || raycluster.View(changed).HasHashedNames() == legacy {
		t.Errorf("a changed template has an unexpected create-cert or naming scheme: %v", certificate)
	}
	if s.OAuth && raycluster.View(stored).Injected().HasTokenVolume || s.OAuth != raycluster.View(changed).Injected().HasTokenVolume {
		t.Error("want no token volume in the stored template, and one in the changed template only if OAuth is enabled")
	}
	foreign := signCommand(`\nDNS.5 = rayclient-other-ns.old.example.com\nDNS.6 = other-head-svc.ns.svc`)
	for description, change := range map[string]func(map[string]any){
		"command":                  changeOf(in(headPod, "initContainers"), "create-cert", set([]any{"sh", "-c", "true"}, "command")),
		"names of another cluster": changeOf(in(headPod, "initContainers"), "create-cert", set(foreign, "command")),
		"no signed name":           changeOf(in(headPod, "initContainers"), "create-cert", set(signCommand(""), "command")),
		"arguments":                changeOf(in(headPod, "initContainers"), "create-cert", set([]any{"x"}, "args")),
		"securityContext":          changeOf(in(headPod, "initContainers"), "create-cert", set(true, "securityContext", "privileged")),
	} {
		forged := copyOf(stored, change)
		if diff := cmp.Diff(find(listAt(changed, in(headPod, "initContainers")...), "create-cert"),
			find(listAt(applyDefaults(t, s, forged, forged), in(headPod, "initContainers")...), "create-cert")); diff != "" {
			t.Errorf("%s: create-cert differs (-want +got):\n%s", description, diff)
		}
	}
}

// A cluster of the CodeFlare operator that is recreated, from Git or a backup, gets the injections of a new cluster and one init container.
func TestLegacyClustersAreRecreated(t *testing.T) {
	for release := range releases {
		s := recordedSettings("openshift-oauth-mtls").with(func(s *Settings) { s.Certificates = config.CertificatesByOperator })
		created := applyDefaults(t, s, storedRecording(t, "openshift-oauth-mtls", false, release), nil)
		expectAllowed(t, s, created, nil)
		injected := raycluster.View(created).Injected()
		if len(listAt(created, in(headPod, "initContainers")...)) != 1 || injected.PodIssued || !injected.MTLS || !injected.HasTokenVolume {
			t.Errorf("%s: got injections %+v, want one init container, certificates of the operator, and a token volume", release, injected)
		}
	}
}
