package resources

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

var forms = map[string]func(*RuntimeInputs){"current": func(*RuntimeInputs) {}, "legacy": legacyForm}

// Containers start in this order, in which their images are pulled. [modelmesh-22] [modelmesh-34]
func TestContainerOrder(t *testing.T) {
	for name, c := range map[string]struct {
		spec *v1alpha1.ServingRuntimeSpec
		rest bool
		want string
	}{
		"adapter":                                {runtimeSpec(withAdapter), false, "triton-adapter triton mm"},
		"adapter and REST proxy":                 {runtimeSpec(withAdapter), true, "rest-proxy triton triton-adapter mm"},
		"puller":                                 {runtimeSpec(), false, "server mm puller"},
		"puller and REST proxy":                  {runtimeSpec(), true, "rest-proxy server mm puller"},
		"[modelmesh-34] no puller":               {runtimeSpec(withoutPuller), true, "rest-proxy server mm"},
		"two servers":                            {runtimeSpec(withoutPuller, withExtraContainer("second")), false, "second server mm"},
		"no server":                              {runtimeSpec(func(s *v1alpha1.ServingRuntimeSpec) { s.Containers = nil }), false, "mm puller"},
		"two servers of the same name":           {runtimeSpec(withoutPuller, withExtraContainer("second"), withExtraContainer("server")), false, "second server mm"},
		"container with the name of the adapter": {runtimeSpec(withAdapter, withExtraContainer("triton-adapter")), false, "triton-adapter triton mm"},
	} {
		for form, change := range forms {
			in := inputs(c.spec, change)
			in.Settings.RESTProxy.Enabled = c.rest
			if got := strings.Join(containerNames(buildPod(t, in)), " "); got != c.want {
				t.Errorf("%s, form %s: containers %s, want %s", name, form, got, c.want)
			}
		}
	}
}

// withExtraContainer adds a container with another image.
func withExtraContainer(name string) func(*v1alpha1.ServingRuntimeSpec) {
	return func(s *v1alpha1.ServingRuntimeSpec) {
		s.Containers = append(s.Containers, corev1.Container{Name: name, Image: fmt.Sprintf("example.com/%s:%d", name, len(s.Containers))})
	}
}

// The last of several containers with the same name replaces the first.
func TestLastContainerOfSameNameIsUsed(t *testing.T) {
	pod := buildPod(t, inputs(runtimeSpec(withExtraContainer("second"), withExtraContainer("server")), withoutRESTAndMetrics))
	if got := getContainer(t, pod, "server").Image; got != "example.com/server:2" {
		t.Errorf("image %s, want that of the last container", got)
	}
}

// A runtime container keeps its spec. [modelmesh-22]
func TestRuntimeContainerKeepsSpec(t *testing.T) {
	specified := corev1.Container{
		Name: "triton", Image: "example.com/server:7", Args: []string{"--a", "b"}, Command: []string{"/run"}, WorkingDir: "/work",
		Env: []corev1.EnvVar{
			{Name: "PLAIN", Value: "1"}, {Name: "EMPTY"},
			{Name: "REF", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k"}}},
		},
		Ports: []corev1.ContainerPort{{Name: "own", ContainerPort: 54321}}, Resources: corev1.ResourceRequirements{Limits: memory("1Gi")},
		LivenessProbe: &corev1.Probe{PeriodSeconds: 7}, StartupProbe: &corev1.Probe{PeriodSeconds: 8},
		SecurityContext: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_NICE"}}},
	}
	for form, change := range forms {
		pod := buildPod(t, inputs(runtimeSpec(withAdapter, func(s *v1alpha1.ServingRuntimeSpec) { s.Containers[0] = specified }), change))
		got := getContainer(t, pod, "triton")
		want := specified.DeepCopy()
		want.Lifecycle = got.Lifecycle
		want.VolumeMounts = []corev1.VolumeMount{{Name: "models-dir", MountPath: "/models"}}
		if diff := cmp.Diff(*want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", form, diff)
		}
		if hook := got.Lifecycle.PreStop.HTTPGet; hook.Path != "/prestop" || hook.Port.IntVal != 8090 {
			t.Errorf("%s: preStop hook %+v", form, hook)
		}
	}
}

// Variables in spec.builtInAdapter.env replace other variables of the adapter, or are appended. [modelmesh-22] [modelmesh-28]
func TestAdapterEnvironment(t *testing.T) {
	spec := runtimeSpec(withAdapter, func(s *v1alpha1.ServingRuntimeSpec) {
		s.BuiltInAdapter.Env = []corev1.EnvVar{
			{Name: "ADAPTER_PORT", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			{Name: "NEW_ENV_VAR", Value: "new"}, {Name: "NEW_ENV_VAR", Value: "newer"},
		}
	})
	in := inputs(spec)
	in.Annotations = map[string]string{"maxLoadingConcurrency": "2", "perModelConcurrencyLimit": "3"}
	got := getContainer(t, buildPod(t, in), "triton-adapter")
	want := []corev1.EnvVar{
		spec.BuiltInAdapter.Env[0],
		{Name: "RUNTIME_PORT", Value: "8001"},
		{Name: "RUNTIME_DATA_ENDPOINT", Value: "port:8001"},
		{Name: "CONTAINER_MEM_REQ_BYTES", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "triton", Resource: "requests.memory"}}},
		{Name: "MEM_BUFFER_BYTES", Value: "134217728"},
		{Name: "LOADTIME_TIMEOUT", Value: "90000"},
		{Name: "USE_EMBEDDED_PULLER", Value: "true"},
		{Name: "RUNTIME_VERSION", Value: "7"},
		{Name: "LOADING_CONCURRENCY", Value: "2"},
		{Name: "LIMIT_PER_MODEL_CONCURRENCY", Value: "3"},
		{Name: "NEW_ENV_VAR", Value: "newer"},
	}
	if diff := cmp.Diff(want, got.Env); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/opt/app/triton-adapter"}, got.Command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
}

// Without endpoints in the spec, the adapter listens on its default port, and RUNTIME_DATA_ENDPOINT is the management port of the model
// server. [M1]
func TestAdapterDefaults(t *testing.T) {
	pod := buildPod(t, inputs(runtimeSpec(withAdapter, func(s *v1alpha1.ServingRuntimeSpec) { s.GRPCEndpoint, s.GRPCDataEndpoint = nil, nil })))
	adapter := getContainer(t, pod, "triton-adapter")
	if port, _ := envValue(adapter, "ADAPTER_PORT"); port != "8085" {
		t.Errorf("ADAPTER_PORT=%s, want %s", port, "8085")
	}
	if data, _ := envValue(adapter, "RUNTIME_DATA_ENDPOINT"); data != "port:8001" {
		t.Errorf("RUNTIME_DATA_ENDPOINT=%s, want %s", data, "port:8001")
	}
	mesh := getContainer(t, pod, "mm")
	if port, _ := envValue(mesh, "INTERNAL_GRPC_PORT"); port != "8085" {
		t.Errorf("INTERNAL_GRPC_PORT=%s, want %s", port, "8085")
	}
	for _, name := range envNames(mesh) {
		if strings.HasPrefix(name, "INTERNAL_SERVING") {
			t.Errorf("%s is set without a data endpoint", name)
		}
	}
}

// One of several duplicates is used, and notices report the others.
func TestDuplicateVariablesAndPorts(t *testing.T) {
	spec := runtimeSpec(func(s *v1alpha1.ServingRuntimeSpec) {
		s.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}, {Name: "A", Value: "3"}}
		s.Containers[0].Ports = []corev1.ContainerPort{{Name: "a", ContainerPort: 1}, {Name: "b", ContainerPort: 1, Protocol: "UDP"}, {Name: "c", ContainerPort: 1, Protocol: "TCP"}}
	})
	d, err := BuildDeployment(inputs(spec))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"spec.containers[server].env: A is set more than once, and the last value is used: remove the others",
		"spec.containers[server].ports: 1 is listed more than once, and the first entry is used: remove the others",
	}, d.Notices); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	server := getContainer(t, buildPod(t, inputs(spec)), "server")
	if diff := cmp.Diff([]corev1.EnvVar{{Name: "B", Value: "2"}, {Name: "A", Value: "3"}}, server.Env); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(server.Ports) != 2 || server.Ports[0].Name != "a" || server.Ports[1].Name != "b" {
		t.Errorf("ports %+v", server.Ports)
	}
}

// Conflicting names and paths, mounts of unknown volumes, and invalid endpoints are errors that name the field. [M41]
func TestConflictingNamesAreRejected(t *testing.T) {
	for name, c := range map[string]struct {
		in   RuntimeInputs
		want string
	}{
		"volume of TLS": {inputs(runtimeSpec(withVolume("tls-certs")), withTLS),
			`spec.volumes: the pod would have two volumes named "tls-certs", counting those of ModelMesh and of claims: choose another name`},
		"two volumes": {inputs(runtimeSpec(withVolume("a"), withVolume("a"))), `two volumes named "a", counting those of ModelMesh`},
		"models directory": {inputs(runtimeSpec(withVolume("a"), withMount("a", "/models"))),
			`spec.containers[server]: two volumes would be mounted at "/models", counting those of ModelMesh: choose another path`},
		"two mounts": {inputs(runtimeSpec(withVolume("a"), withVolume("b"), withMount("a", "/x"), withMount("b", "/x"))),
			`spec.containers[server]: two volumes would be mounted at "/x", counting those of ModelMesh: choose another path`},
		"socket directory": {inputs(runtimeSpec(withSockets, withVolume("a"), withMount("a", "/tmp/own"))), `mounted at "/tmp/own"`},
		"unknown volume":   {inputs(runtimeSpec(withMount("a", "/a"))), `spec.containers[server]: there is no volume named "a" to mount: add it to spec.volumes or choose another`},
		"invalid endpoint": {inputs(runtimeSpec(func(s *v1alpha1.ServingRuntimeSpec) { s.GRPCEndpoint = new("8085") })), "spec.grpcEndpoint"},
	} {
		if d, err := BuildDeployment(c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Deployment %v, error %v, want %q", name, d, err, c.want)
		}
	}
	if _, err := BuildDeployment(inputs(runtimeSpec(withVolume("tls-certs")))); err != nil {
		t.Errorf("volume tls-certs without TLS: error %v, want none", err)
	}
	pod := buildPod(t, inputs(runtimeSpec(withMount("models-dir", "/models"), withMount("models-dir", "/more"))))
	if diff := cmp.Diff([]string{"models-dir /models", "models-dir /more"}, mounts(getContainer(t, pod, "server"))); diff != "" {
		t.Errorf("mounts of the models volume (-want +got):\n%s", diff)
	}
}

func withVolume(name string) func(*v1alpha1.ServingRuntimeSpec) {
	return func(s *v1alpha1.ServingRuntimeSpec) {
		s.Volumes = append(s.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
}

func withMount(volume, path string) func(*v1alpha1.ServingRuntimeSpec) {
	return func(s *v1alpha1.ServingRuntimeSpec) {
		s.Containers[0].VolumeMounts = append(s.Containers[0].VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path})
	}
}

// [modelmesh-26] Labels and annotations of the runtime override those of the settings.
func TestPodLabelsAndAnnotations(t *testing.T) {
	in := inputs(runtimeSpec(func(s *v1alpha1.ServingRuntimeSpec) {
		s.Labels = map[string]string{"both": "spec", "spec": "1"}
		s.Annotations = map[string]string{"both": "spec", "spec": "1"}
	}), withoutRESTAndMetrics)
	in.Settings.RuntimePodLabels = map[string]string{"both": "settings", "settings": "1"}
	in.Settings.RuntimePodAnnotations = map[string]string{"both": "settings", "settings": "1"}
	template := decode[appsv1.Deployment](t, buildDeploymentFor(t, in)).Spec.Template
	want := map[string]string{"both": "spec", "spec": "1", "settings": "1"}
	if diff := cmp.Diff(want, template.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	for key, value := range map[string]string{LabelService: "modelmesh-serving", LabelName: "modelmesh-serving-own", labelAppName: ControllerName,
		labelInstance: ControllerName, LabelManagedBy: ControllerName} {
		want[key] = value
	}
	if diff := cmp.Diff(want, template.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	defaults := decode[appsv1.Deployment](t, buildDeploymentFor(t, inputs(runtimeSpec(), withoutRESTAndMetrics))).Spec.Template
	if defaults.Annotations != nil || len(defaults.Labels) != 5 {
		t.Errorf("defaults: annotations %v, labels %v, want only the five common labels", defaults.Annotations, defaults.Labels)
	}
}

// Labels in selectors cannot be overridden. [M38]
func TestReservedLabels(t *testing.T) {
	for form, change := range forms {
		in := inputs(runtimeSpec(func(s *v1alpha1.ServingRuntimeSpec) { s.Labels = map[string]string{LabelName: "other", "ok": "1"} }), change)
		in.Settings.RuntimePodLabels = map[string]string{LabelService: "other", LabelName: "modelmesh-serving-own"}
		d, err := BuildDeployment(in)
		if err != nil {
			t.Fatal(err)
		}
		deployment := decode[appsv1.Deployment](t, buildDeploymentFor(t, in))
		for key, value := range deployment.Spec.Selector.MatchLabels {
			if deployment.Spec.Template.Labels[key] != value {
				t.Errorf("%s: pod label %s is %q, want that of the selector", form, key, deployment.Spec.Template.Labels[key])
			}
		}
		if diff := cmp.Diff([]string{
			"setting runtimePodLabels: label modelmesh-service is ignored, because pods are selected by it: choose another key",
			"spec.labels: label name is ignored, because pods are selected by it: choose another key",
		}, d.Notices); diff != "" {
			t.Errorf("%s: notices (-want +got):\n%s", form, diff)
		}
	}
}

// [modelmesh-27] Pods have the pull secrets of the settings, then those of the runtime, without duplicates.
func TestPullSecrets(t *testing.T) {
	refs := func(names ...string) []corev1.LocalObjectReference {
		var references []corev1.LocalObjectReference
		for _, name := range names {
			references = append(references, corev1.LocalObjectReference{Name: name})
		}
		return references
	}
	for name, c := range map[string]struct{ settings, spec, want []corev1.LocalObjectReference }{
		"settings":              {refs("b", "a"), nil, refs("b", "a")},
		"no image pull secrets": {nil, nil, nil},
		"spec":                  {nil, refs("b", "a"), refs("b", "a")},
		"settings and spec":     {refs("config-1", "config-2", "overlap"), refs("sr-1", "overlap", "sr-2"), refs("config-1", "config-2", "overlap", "sr-1", "sr-2")},
		"empty name":            {refs(""), refs("a", "a"), refs("a")},
	} {
		in := inputs(runtimeSpec(func(s *v1alpha1.ServingRuntimeSpec) { s.ImagePullSecrets = c.spec }))
		in.Settings.ImagePullSecrets = c.settings
		if diff := cmp.Diff(c.want, buildPod(t, in).ImagePullSecrets); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// [UP-F6] Pods have the scheduler and the resource claims of the runtime, and ignored fields are reported.
func TestSchedulerAndResourceClaims(t *testing.T) {
	in := inputs(runtimeSpec(func(s *v1alpha1.ServingRuntimeSpec) {
		s.SchedulerName, s.ResourceClaims, s.Ignored = "gpus", []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("one")}}, []string{"workerSpec"}
		s.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	}))
	pod := buildPod(t, in)
	claimed := slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool { return len(c.Resources.Claims) == 1 })
	if pod.SchedulerName != "gpus" || !claimed || !cmp.Equal(pod.ResourceClaims, in.Spec.ResourceClaims) {
		t.Errorf("scheduler %q, claims %+v, used by a container: %t", pod.SchedulerName, pod.ResourceClaims, claimed)
	}
	built, err := BuildDeployment(in)
	if want := []string{"spec.workerSpec has no effect on pods of ModelMesh: remove it"}; err != nil || !slices.Equal(built.Notices, want) {
		t.Errorf("notices %q, error %v, want %q", built.Notices, err, want)
	}
}

// [UP-F6] Container and volume fields of newer KServe schemas are kept.
func TestNewerPodFieldsAreKept(t *testing.T) {
	envFromFile := corev1.EnvVar{Name: "F", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "own", Path: "own.env", Key: "F", Optional: new(true)}}}
	identity := corev1.Volume{Name: "identity", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{PodCertificate: &corev1.PodCertificateProjection{SignerName: "example.com/s", KeyType: "ED25519", CredentialBundlePath: "bundle.pem"}},
	}}}}
	rules := []corev1.ContainerRestartRule{{
		Action:    corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}}
	in := inputs(runtimeSpec(withAdapter, withVolume("own"), func(s *v1alpha1.ServingRuntimeSpec) {
		s.Volumes = append(s.Volumes, identity)
		s.Containers[0].Env, s.BuiltInAdapter.Env = []corev1.EnvVar{envFromFile}, []corev1.EnvVar{envFromFile}
		s.Containers[0].RestartPolicy, s.Containers[0].RestartPolicyRules = new(corev1.ContainerRestartPolicyNever), rules
	}))
	pod := buildPod(t, in)
	found := 0
	for i := range pod.Containers {
		c := &pod.Containers[i]
		if slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return cmp.Equal(v, envFromFile) }) {
			found++
		}
		if c.Name == in.Spec.Containers[0].Name && (!cmp.Equal(c.RestartPolicyRules, rules) || c.RestartPolicy == nil) {
			t.Errorf("restart policy rules %+v, want %+v", c.RestartPolicyRules, rules)
		}
	}
	if hasVolume := slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return cmp.Equal(v, identity) }); found != 2 || !hasVolume {
		t.Errorf("%d containers have the variable, want 2; the pod has the volume: %t", found, hasVolume)
	}
}

// [modelmesh-33] Without a replica count spec.replicas is unset.
func TestDeploymentReplicas(t *testing.T) {
	in := inputs(runtimeSpec())
	in.Replicas = new(int32(5))
	if got := decode[appsv1.Deployment](t, buildDeploymentFor(t, in)).Spec.Replicas; got == nil || *got != 5 {
		t.Errorf("replicas %v, want 5", got)
	}
	in.Replicas = nil
	if got := decode[appsv1.Deployment](t, buildDeploymentFor(t, in)).Spec.Replicas; got != nil {
		t.Errorf("replicas %d, want the field unset", *got)
	}
}

// Long names of runtimes result in valid, unique names of Deployments.
func TestLongNamesAreValidAndUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, suffix := range []string{"a", "b"} {
		in := inputs(runtimeSpec())
		in.Name = strings.Repeat("long.", 50) + suffix
		d := decode[appsv1.Deployment](t, buildDeploymentFor(t, in))
		if problems := slices.Concat(validation.IsDNS1123Subdomain(d.Name), validation.IsValidLabelValue(d.Labels[LabelName])); len(problems) > 0 || seen[d.Name] {
			t.Errorf("Deployment %s: the name is invalid or not unique: %q", d.Name, problems)
		}
		seen[d.Name] = true
		if labels, _ := envValue(getContainer(t, d.Spec.Template.Spec, "mm"), "MM_LABELS"); !strings.HasSuffix(labels, "rt:"+in.Name) {
			t.Errorf("MM_LABELS=%s, want the full name of the runtime", labels)
		}
	}
	if got := DeploymentName("modelmesh-serving", "mlserver-1.x"); got != "modelmesh-serving-mlserver-1.x" {
		t.Errorf("DeploymentName returned %s", got)
	}
}

// The hash depends only on the pod template.
func TestTemplateHash(t *testing.T) {
	hash := func(in RuntimeInputs) string {
		d, err := BuildDeployment(in)
		if err != nil {
			t.Fatal(err)
		}
		h := TemplateHash(d.Config)
		if len(h) != 16 {
			t.Fatalf("TemplateHash returned %q, want 16 characters", h)
		}
		return h
	}
	in := inputs(runtimeSpec())
	scaled := inputs(runtimeSpec(), func(in *RuntimeInputs) { in.Replicas = new(int32(9)) })
	if hash(in) != hash(inputs(runtimeSpec())) || hash(in) != hash(scaled) {
		t.Error("equal pod templates have different hashes")
	}
	if hash(in) == hash(inputs(runtimeSpec(), legacyForm)) || hash(in) == hash(inputs(runtimeSpec(withSockets))) {
		t.Error("different pod templates have the same hash")
	}
}
