package resources

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

func TestProbes(t *testing.T) {
	container := podOf(t, mlflowtest.MLflow(), platformInputs["plain"]).Containers[0]
	get := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("https"), Scheme: corev1.URISchemeHTTPS}}
	}
	for name, c := range map[string]struct{ got, want *corev1.Probe }{
		"[mlflow-7] liveness": {container.LivenessProbe, &corev1.Probe{
			ProbeHandler: get("/mlflow/health"), InitialDelaySeconds: 30, PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}},
		"[mlflow-7] readiness": {container.ReadinessProbe, &corev1.Probe{
			ProbeHandler: get("/mlflow/api/3.0/mlflow/server-info"), InitialDelaySeconds: 5, PeriodSeconds: 5, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.got); diff != "" {
				t.Errorf("probe (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArgs(t *testing.T) {
	tail := []string{
		"--app-name=kubernetes-auth", "--enable-workspaces", "--workspace-store-uri=kubernetes://", "--host=0.0.0.0", "--port=8443", "--workers=1",
		"--uvicorn-opts=--ssl-keyfile=/etc/tls/private/tls.key --ssl-certfile=/etc/tls/private/tls.crt --proxy-headers",
		"--allowed-hosts", "*", "--static-prefix=/mlflow", "--expose-prometheus=/prometheus",
	}
	for name, c := range map[string]struct {
		change func(*mlflowv1.MLflowSpec)
		in     Inputs
		head   []string
		tail   []string
	}{
		"[mlflow-27] served artifacts": {func(*mlflowv1.MLflowSpec) {}, platformInputs["bare"],
			[]string{"server", "--serve-artifacts", "--artifacts-destination=s3://team-artifacts"}, tail},
		"[mlflow-18] default destination": {func(s *mlflowv1.MLflowSpec) { s.ArtifactsDestination = "" }, platformInputs["bare"],
			[]string{"server", "--serve-artifacts", "--artifacts-destination=file:///mlflow/artifacts"}, tail},
		"[mlflow-18] custom root": {func(s *mlflowv1.MLflowSpec) { s.DefaultArtifactRoot = "s3://root" }, platformInputs["bare"],
			[]string{"server", "--serve-artifacts", "--artifacts-destination=s3://team-artifacts", "--default-artifact-root=s3://root"}, tail},
		"[mlflow-18] not served, four workers": {
			func(s *mlflowv1.MLflowSpec) {
				s.ServeArtifacts, s.DefaultArtifactRoot, s.Workers = false, "s3://root", new(int32(4))
			}, platformInputs["bare"],
			[]string{"server", "--no-serve-artifacts", "--default-artifact-root=s3://root"}, replaced(tail, "--workers=1", "--workers=4")},
		"IPv6": {func(*mlflowv1.MLflowSpec) {}, with(platformInputs["bare"], func(in *Inputs) { in.IPv6 = true }),
			[]string{"server", "--serve-artifacts", "--artifacts-destination=s3://team-artifacts"}, replaced(tail, "--host=0.0.0.0", "--host=::")},
		"[mlflow-17] ServiceMonitors": {func(*mlflowv1.MLflowSpec) {}, platformInputs["plain"],
			[]string{"server", "--serve-artifacts", "--artifacts-destination=s3://team-artifacts"}, tail},
	} {
		t.Run(name, func(t *testing.T) {
			container := podOf(t, mlflowtest.MLflow(c.change), c.in).Containers[0]
			if diff := cmp.Diff(append(c.head, c.tail...), container.Args); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"mlflow"}, container.Command); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
		})
	}
}

func replaced(list []string, from, to string) []string {
	list = slices.Clone(list)
	list[slices.Index(list, from)] = to
	return list
}

func TestImage(t *testing.T) {
	all := with(platformInputs["plain"], func(in *Inputs) { in.PlatformCABundle = true })
	for name, c := range map[string]struct {
		image  *mlflowv1.ImageConfig
		want   string
		policy corev1.PullPolicy
	}{
		"[mlflow-16] default":          {nil, all.Image, ""},
		"[mlflow-16] empty":            {&mlflowv1.ImageConfig{}, all.Image, ""},
		"[mlflow-16] policy only":      {&mlflowv1.ImageConfig{ImagePullPolicy: corev1.PullNever}, all.Image, corev1.PullNever},
		"[mlflow-16] image and policy": {&mlflowv1.ImageConfig{Image: "example.com/own@sha256:0", ImagePullPolicy: corev1.PullAlways}, "example.com/own@sha256:0", corev1.PullAlways},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf(t, mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { s.Image = c.image }), all)
			containers := append(slices.Clone(pod.InitContainers), pod.Containers...)
			if len(containers) != 3 {
				t.Fatalf("got %d containers", len(containers))
			}
			for _, got := range containers {
				if got.Image != c.want || got.ImagePullPolicy != c.policy {
					t.Errorf("%s runs %s (%s), want %s (%s)", got.Name, got.Image, got.ImagePullPolicy, c.want, c.policy)
				}
			}
		})
	}
}

func TestStrategyAndReplicas(t *testing.T) {
	rolling := appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0))}}
	for name, c := range map[string]struct {
		change   func(*mlflowv1.MLflowSpec)
		strategy appsv1.DeploymentStrategy
		replicas int32
	}{
		"without storage":            {func(*mlflowv1.MLflowSpec) {}, rolling, 1},
		"with storage":               {mlflowtest.WithStorage(corev1.PersistentVolumeClaimSpec{}), appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, 1},
		"[mlflow-25] three replicas": {func(s *mlflowv1.MLflowSpec) { s.Replicas = new(int32(3)) }, rolling, 3},
		"[mlflow-25] replicas unset": {func(s *mlflowv1.MLflowSpec) { s.Replicas = nil }, rolling, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := deploymentOf(t, mlflowtest.MLflow(c.change), platformInputs["plain"])
			if diff := cmp.Diff(c.strategy, d.Spec.Strategy); diff != "" {
				t.Errorf("strategy (-want +got):\n%s", diff)
			}
			if *d.Spec.Replicas != c.replicas {
				t.Errorf("replicas = %d", *d.Spec.Replicas)
			}
		})
	}
}

func TestPodMetadata(t *testing.T) {
	base := map[string]string{"app": "mlflow", "component": "mlflow", "app.kubernetes.io/instance": "mlflow"}
	for name, c := range map[string]struct{ labels, annotations map[string]string }{
		"[mlflow-21] none":            {},
		"[mlflow-21] one":             {map[string]string{"a": "1"}, map[string]string{"b": "2"}},
		"[mlflow-21] many":            {map[string]string{"a": "1", "c": "3"}, map[string]string{"b": "2", "example.com/d": "a \"quoted\": text\n"}},
		"[D7] labels of the operator": {map[string]string{"app": "x", "component": "y", "app.kubernetes.io/instance": "z", "own": "o"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := deploymentOf(t, mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { s.PodLabels, s.PodAnnotations = c.labels, c.annotations }), platformInputs["plain"])
			want := map[string]string{}
			for _, m := range []map[string]string{c.labels, base} {
				for k, v := range m {
					want[k] = v
				}
			}
			if diff := cmp.Diff(want, d.Spec.Template.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.annotations, d.Spec.Template.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"app": "mlflow"}, d.Spec.Selector.MatchLabels); diff != "" {
				t.Errorf("selector (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResources(t *testing.T) {
	quantities := func(cpu, memory string) corev1.ResourceList {
		list := corev1.ResourceList{}
		if cpu != "" {
			list[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			list[corev1.ResourceMemory] = resource.MustParse(memory)
		}
		return list
	}
	for name, c := range map[string]struct{ given, want *corev1.ResourceRequirements }{
		"[mlflow-25] default": {nil, &corev1.ResourceRequirements{Requests: quantities("1", "2Gi"), Limits: quantities("4", "3Gi")}},
		"[D5] a request above the default limit": {&corev1.ResourceRequirements{Requests: quantities("", "8Gi")},
			&corev1.ResourceRequirements{Requests: quantities("1", "8Gi"), Limits: quantities("4", "")}},
		"[D5] a limit below the default request": {&corev1.ResourceRequirements{Limits: quantities("500m", "")},
			&corev1.ResourceRequirements{Requests: quantities("", "2Gi"), Limits: quantities("500m", "3Gi")}},
		"[D5] within the defaults": {&corev1.ResourceRequirements{Requests: quantities("2", ""), Limits: quantities("", "2Gi")},
			&corev1.ResourceRequirements{Requests: quantities("2", "2Gi"), Limits: quantities("4", "2Gi")}},
		"[D5] empty": {&corev1.ResourceRequirements{}, &corev1.ResourceRequirements{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := podOf(t, mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { s.Resources = c.given }), platformInputs["plain"]).Containers[0].Resources
			if diff := cmp.Diff(*c.want, got); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResourceClaims(t *testing.T) {
	for name, claim := range map[string]corev1.PodResourceClaim{
		"[mlflow-14] template": {Name: "gpu", ResourceClaimTemplateName: new("one-gpu")},
		"[mlflow-14] direct":   {Name: "gpu", ResourceClaimName: new("the-gpu")},
	} {
		t.Run(name, func(t *testing.T) {
			m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) {
				s.ResourceClaims = []corev1.PodResourceClaim{claim}
				s.Resources = &corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu", Request: "one"}}}
			})
			pod := podOf(t, m, platformInputs["plain"])
			if diff := cmp.Diff([]corev1.PodResourceClaim{claim}, pod.ResourceClaims); diff != "" {
				t.Errorf("claims of the pod (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]corev1.ResourceClaim{{Name: "gpu", Request: "one"}}, pod.Containers[0].Resources.Claims); diff != "" {
				t.Errorf("claims of the container (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSecurityContexts(t *testing.T) {
	defaultPod := corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	defaultContainer := corev1.SecurityContext{AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	ownPod := corev1.PodSecurityContext{FSGroup: new(int64(2000)), Sysctls: []corev1.Sysctl{{Name: "a", Value: "b"}}}
	ownContainer := corev1.SecurityContext{RunAsUser: new(int64(7))}
	for name, c := range map[string]struct {
		pod           *corev1.PodSecurityContext
		container     *corev1.SecurityContext
		wantPod       corev1.PodSecurityContext
		wantContainer corev1.SecurityContext
	}{
		"default":              {nil, nil, defaultPod, defaultContainer},
		"both set in the spec": {&ownPod, &ownContainer, ownPod, ownContainer},
		"empty contexts":       {&corev1.PodSecurityContext{}, &corev1.SecurityContext{}, corev1.PodSecurityContext{}, corev1.SecurityContext{}},
	} {
		t.Run(name, func(t *testing.T) {
			m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { s.PodSecurityContext, s.SecurityContext = c.pod, c.container })
			pod := podOf(t, m, with(platformInputs["plain"], func(in *Inputs) { in.PlatformCABundle = true }))
			if diff := cmp.Diff(&c.wantPod, pod.SecurityContext); diff != "" {
				t.Errorf("pod (-want +got):\n%s", diff)
			}
			for _, got := range append(slices.Clone(pod.InitContainers), pod.Containers...) {
				if diff := cmp.Diff(&c.wantContainer, got.SecurityContext); diff != "" {
					t.Errorf("container %s (-want +got):\n%s", got.Name, diff)
				}
			}
		})
	}
}

func TestScheduling(t *testing.T) {
	want := corev1.PodSpec{
		NodeSelector: map[string]string{"disk": "fast"},
		Tolerations:  []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(0))}},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "k", Operator: corev1.NodeSelectorOpIn, Values: []string{"v"}}}}}}}},
	}
	got := podOf(t, mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) {
		s.NodeSelector, s.Tolerations, s.Affinity, s.ServiceAccountName = want.NodeSelector, want.Tolerations, want.Affinity, "runner"
	}), platformInputs["plain"])
	if diff := cmp.Diff(want, corev1.PodSpec{NodeSelector: got.NodeSelector, Tolerations: got.Tolerations, Affinity: got.Affinity}); diff != "" {
		t.Errorf("scheduling (-want +got):\n%s", diff)
	}
	if got.ServiceAccountName != "runner" || !*got.AutomountServiceAccountToken {
		t.Errorf("runs as %q, token %v", got.ServiceAccountName, *got.AutomountServiceAccountToken)
	}
}

func TestVolumes(t *testing.T) {
	volumes := func(change func(*mlflowv1.MLflowSpec), in Inputs) string {
		var names []string
		pod := podOf(t, mlflowtest.MLflow(change), in)
		for _, v := range pod.Volumes {
			names = append(names, v.Name)
		}
		for _, m := range pod.Containers[0].VolumeMounts {
			names = append(names, m.Name+"="+m.MountPath)
		}
		return strings.Join(names, " ")
	}
	for name, c := range map[string]struct {
		change func(*mlflowv1.MLflowSpec)
		in     Inputs
		want   string
	}{
		"bare": {func(*mlflowv1.MLflowSpec) {}, platformInputs["bare"], "tmp mlflow-tls metrics tmp=/tmp mlflow-tls=/etc/tls/private metrics=/prometheus"},
		"[mlflow-17] ServiceMonitors": {func(*mlflowv1.MLflowSpec) {}, platformInputs["plain"],
			"tmp mlflow-tls metrics tmp=/tmp mlflow-tls=/etc/tls/private metrics=/prometheus"},
		"[mlflow-22] storage": {mlflowtest.WithStorage(corev1.PersistentVolumeClaimSpec{}), platformInputs["bare"],
			"tmp mlflow-storage mlflow-tls metrics tmp=/tmp mlflow-storage=/mlflow mlflow-tls=/etc/tls/private metrics=/prometheus"},
		"[mlflow-12] CA bundle": {func(s *mlflowv1.MLflowSpec) { s.CABundleConfigMap = &mlflowv1.CABundleConfigMapRef{Name: "own"} }, platformInputs["bare"],
			"tmp mlflow-tls ca-bundle-0 combined-ca-bundle metrics tmp=/tmp mlflow-tls=/etc/tls/private combined-ca-bundle=/etc/pki/tls/certs/combined metrics=/prometheus"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := volumes(c.change, c.in); got != c.want {
				t.Errorf("volumes and mounts\n got %s\nwant %s", got, c.want)
			}
		})
	}
	for platform, mode := range map[string]int32{"openshift": 416, "plain": 420, "bare": 420} {
		t.Run("[mlflow-17] mode of the certificate on "+platform, func(t *testing.T) {
			for _, v := range podOf(t, mlflowtest.MLflow(), platformInputs[platform]).Volumes {
				if v.Secret != nil && *v.Secret.DefaultMode != mode {
					t.Errorf("mode %o, want %o", *v.Secret.DefaultMode, mode)
				}
			}
		})
	}
	for name, c := range map[string]struct {
		given *mlflowv1.TemporaryStorageConfig
		want  string
	}{
		"[mlflow-23] default": {nil, "1Gi"},
		"[mlflow-23] empty":   {&mlflowv1.TemporaryStorageConfig{}, "1Gi"},
		"[mlflow-23] given":   {&mlflowv1.TemporaryStorageConfig{SizeLimit: new(resource.MustParse("3Gi"))}, "3Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf(t, mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { s.TemporaryStorage = c.given }), platformInputs["plain"])
			if got := pod.Volumes[0].EmptyDir.SizeLimit.String(); got != c.want {
				t.Errorf("scratch size %s, want %s", got, c.want)
			}
		})
	}
}
