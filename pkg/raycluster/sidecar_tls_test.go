package raycluster

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

var (
	demo  = View(map[string]any{"metadata": map[string]any{"name": "demo", "namespace": "team", "annotations": map[string]any{AnnotationVersion: "1"}}})
	sizes = corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
)

// decodeStrict decodes an apply configuration strictly, as the API server does.
func decodeStrict[T any](t *testing.T, config any) T {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var into T
	if err := yaml.UnmarshalStrict(text, &into); err != nil {
		t.Fatal(err)
	}
	return into
}

func restrictedContext() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

func decodeSidecar(t *testing.T, s Sidecar) (corev1.Container, []corev1.Volume) {
	t.Helper()
	container := s.Container()
	return decodeStrict[corev1.Container](t, container), decodeStrict[[]corev1.Volume](t, s.Volumes())
}

// The OAuth sidecar equals that of the CodeFlare operator except for the fixes of R10, R15 and R30.
func TestOAuthSidecar(t *testing.T) {
	n := demo.Names()
	s := Sidecar{Auth: AuthOAuth, Names: n, Namespace: "team", Image: "i", Resources: sizes}
	container, volumes := decodeSidecar(t, s)
	legacyArgs := []string{ // as recorded
		"--https-address=:8443", "--provider=openshift", "--openshift-service-account=" + n.ServiceAccount, "--upstream=http://localhost:8265",
		"--tls-cert=/etc/tls/private/tls.crt", "--tls-key=/etc/tls/private/tls.key", "--cookie-secret=$(COOKIE_SECRET)",
		`--openshift-delegate-urls={"/":{"resource":"pods","namespace":"team","verb":"get"}}`,
	}
	if diff := cmp.Diff(legacyArgs, s.LegacyArgs()); diff != "" {
		t.Errorf("arguments of the CodeFlare operator (-want +got):\n%s", diff)
	}
	want := corev1.Container{
		Name: "oauth-proxy", Image: "i", Args: append(slices.Delete(slices.Clone(legacyArgs), 6, 7), `--openshift-sar={"resource":"pods","namespace":"team","verb":"get"}`),
		Ports: []corev1.ContainerPort{{Name: "oauth-proxy", ContainerPort: 8443, Protocol: corev1.ProtocolTCP}},
		Env: []corev1.EnvVar{{Name: "OAUTH2_PROXY_COOKIE_SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: n.CookieSecret}, Key: "cookie_secret",
		}}}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "proxy-tls-secret", MountPath: "/etc/tls/private", ReadOnly: true},
			{Name: "oauth-proxy-token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		},
		Resources: sizes, SecurityContext: restrictedContext(),
	}
	if diff := cmp.Diff(want, container); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Kubernetes clients in pods expect these files.
	wantVolumes := []corev1.Volume{
		{Name: "proxy-tls-secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: n.ProxyTLS}}},
		{Name: "oauth-proxy-token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3600))}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		}}}},
	}
	if diff := cmp.Diff(wantVolumes, volumes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.SecretToken = true
	_, volumes = decodeSidecar(t, s)
	if volumes[1].Secret == nil || volumes[1].Secret.SecretName != n.TokenSecret || volumes[1].Projected != nil {
		t.Errorf("want a Secret volume, got %+v", volumes[1])
	}
}

// [R16] The sidecar on plain Kubernetes has the same port as the OAuth proxy, and requires the same permission.
func TestProxySidecar(t *testing.T) {
	n := demo.Names()
	container, volumes := decodeSidecar(t, Sidecar{Auth: AuthProxy, Names: n, Namespace: "team", Image: "i", Resources: sizes})
	if container.Name != rbacproxy.ContainerName || container.Ports[0].Name != PortProxyName || container.Ports[0].ContainerPort != PortProxy {
		t.Errorf("unexpected name or ports of container %s: %+v", container.Name, container.Ports)
	}
	if diff := cmp.Diff(restrictedContext(), container.SecurityContext); diff != "" {
		t.Errorf("securityContext (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(sizes, container.Resources); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	mounted := map[string]string{}
	for _, mount := range container.VolumeMounts {
		mounted[mount.Name] = mount.MountPath
	}
	for _, volume := range volumes {
		if mounted[volume.Name] == "" {
			t.Errorf("the sidecar does not mount volume %s", volume.Name)
		}
		delete(mounted, volume.Name)
		if volume.Secret != nil && volume.Secret.DefaultMode != nil {
			t.Errorf("%s: want the default mode, because the sidecar does not run as root", volume.Name)
		}
	}
	if len(mounted) > 0 {
		t.Errorf("no volumes for %v", mounted)
	}
	rules := rbacproxy.Config(RequiredAccess("team"))
	want := "authorization:\n  resourceAttributes:\n    apiVersion: v1\n    namespace: team\n    resource: pods\n    verb: get\n"
	if rules[KeyProxyConfig] != want {
		t.Errorf("unexpected rules %q", rules)
	}
}

// [R12] Only pods that sign their own certificate mount the key of the CA.
func TestTLS(t *testing.T) {
	n := demo.Names()
	signed := []string{demo.ClientDNSName("d"), demo.HeadDNSName()}
	items := func(pairs ...string) []corev1.KeyToPath {
		var list []corev1.KeyToPath
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, corev1.KeyToPath{Key: pairs[i], Path: pairs[i+1]})
		}
		return list
	}
	secretVolume := func(name, secret string, items []corev1.KeyToPath) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: items}}}
	}
	leaf := items("tls.crt", "server.crt", "tls.key", "server.key", "ca.crt", "ca.crt")
	podIssued := []corev1.Volume{secretVolume("ca-vol", n.CASecret, nil), {Name: "server-cert", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	for name, test := range map[string]struct {
		tls     TLS
		volumes []corev1.Volume
		command []string
		env     []string
	}{
		"head, operator":       {TLS{Issuer: IssuerOperator, Head: true}, []corev1.Volume{secretVolume("ca-vol", n.CASecret, items("ca.crt", "ca.crt")), secretVolume("server-cert", n.HeadTLS, leaf)}, WaitCommand(), []string{"MY_POD_IP", "RAY_NODE_TYPE", "RAY_TLS_SERVER_CERT", "RAY_TLS_CA_CERT"}},
		"worker, cert-manager": {TLS{Issuer: IssuerCertManager}, []corev1.Volume{secretVolume("ca-vol", n.CASecret, items("ca.crt", "ca.crt")), secretVolume("server-cert", n.WorkerTLS, leaf)}, WaitCommand(), []string{"MY_POD_IP", "RAY_NODE_TYPE", "RAY_TLS_SERVER_CERT", "RAY_TLS_CA_CERT"}},
		"head, pod":            {TLS{Issuer: IssuerPod, Head: true}, podIssued, SignCommand(signed...), nil},
		"worker, pod":          {TLS{Issuer: IssuerPod}, podIssued, SignCommand(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			test.tls.Names, test.tls.Image, test.tls.Resources, test.tls.SignedNames = n, "i", sizes, signed
			if diff := cmp.Diff(test.volumes, decodeStrict[[]corev1.Volume](t, test.tls.Volumes())); diff != "" {
				t.Errorf("volumes (-want +got):\n%s", diff)
			}
			mounts := []corev1.VolumeMount{
				{Name: "ca-vol", MountPath: "/home/ray/workspace/ca", ReadOnly: true},
				{Name: "server-cert", MountPath: "/home/ray/workspace/tls", ReadOnly: test.tls.Issuer != IssuerPod},
			}
			if diff := cmp.Diff(mounts, decodeStrict[[]corev1.VolumeMount](t, test.tls.Mounts())); diff != "" {
				t.Errorf("mounts (-want +got):\n%s", diff)
			}
			container := decodeStrict[corev1.Container](t, test.tls.InitContainer())
			var env []string
			for _, variable := range container.Env {
				env = append(env, variable.Name)
			}
			if diff := cmp.Diff(test.env, env); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
			container.Env = nil
			securityContext := restrictedContext()
			securityContext.RunAsUser = new(int64(1000))
			want := corev1.Container{Name: "create-cert", Image: "i", Command: test.command, VolumeMounts: mounts, Resources: sizes, SecurityContext: securityContext}
			if diff := cmp.Diff(want, container); diff != "" {
				t.Errorf("container (-want +got):\n%s", diff)
			}
		})
	}
	for user, nonRoot := range map[int64]*bool{0: nil, 7: new(true)} {
		got := decodeStrict[corev1.Container](t, TLS{Issuer: IssuerPod, Pod: map[string]any{"securityContext": map[string]any{"runAsUser": user}}}.InitContainer()).SecurityContext
		if diff := cmp.Diff(nonRoot, got.RunAsNonRoot); diff != "" || *got.RunAsUser != user {
			t.Errorf("user %d: runAsUser %d, runAsNonRoot (-want +got):\n%s", user, *got.RunAsUser, diff)
		}
	}
}

// [raycluster-13] The variables have the order of the CodeFlare operator.
func TestTLSEnv(t *testing.T) {
	want := []corev1.EnvVar{
		{Name: "MY_POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{Name: "RAY_USE_TLS", Value: "1"},
		{Name: "RAY_TLS_SERVER_CERT", Value: "/home/ray/workspace/tls/server.crt"},
		{Name: "RAY_TLS_SERVER_KEY", Value: "/home/ray/workspace/tls/server.key"},
		{Name: "RAY_TLS_CA_CERT", Value: "/home/ray/workspace/tls/ca.crt"},
	}
	if diff := cmp.Diff(want, decodeStrict[[]corev1.EnvVar](t, TLSEnv())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRunAsUser(t *testing.T) {
	for text, want := range map[string]int64{
		"{}":                                1000,
		"{containers: []}":                  1000,
		"{containers: [5]}":                 1000,
		"{securityContext: {runAsUser: 3}}": 3,
		"{securityContext: {runAsUser: x}}": 1000,
		"{containers: [{securityContext: {runAsUser: 4}}], securityContext: {runAsUser: 3}}":            4,
		"{containers: [{name: a}, {securityContext: {runAsUser: 4}}], securityContext: {runAsUser: 3}}": 3,
	} {
		if got := RunAsUser(clusterOf(t, text).Object()); got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}
