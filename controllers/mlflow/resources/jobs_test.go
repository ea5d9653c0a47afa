package resources

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

func cronJobOf(t *testing.T, m *mlflowv1.MLflow, in Inputs, name string) *batchv1.CronJob {
	t.Helper()
	return typed[batchv1.CronJob](t, m, in, "CronJob", name)
}

func jobPod(t *testing.T, m *mlflowv1.MLflow, in Inputs, name string) corev1.PodSpec {
	t.Helper()
	return cronJobOf(t, m, in, name).Spec.JobTemplate.Spec.Template.Spec
}

// namesLike returns the kinds and names of the built objects whose names contain part.
func namesLike(t *testing.T, m *mlflowv1.MLflow, part string) []string {
	t.Helper()
	var found []string
	for _, o := range buildObjects(t, m, platformInputs["openshift"]) {
		if strings.Contains(o.GetName(), part) {
			found = append(found, o.GetKind()+"/"+o.GetName())
		}
	}
	return found
}

func TestGarbageCollectionObjects(t *testing.T) {
	plain, openshift := platformInputs["plain"], platformInputs["openshift"]
	t.Run("[mlflow-15] none by default", func(t *testing.T) {
		if got := namesLike(t, mlflowtest.MLflow(), "gc"); got != nil {
			t.Errorf("unexpected objects: %v", got)
		}
	})
	t.Run("[mlflow-15] with suffix", func(t *testing.T) {
		want := []string{"ServiceAccount/mlflow-gc-sa", "ClusterRole/mlflow-gc-team", "ClusterRoleBinding/mlflow-gc-team", "CronJob/mlflow-gc-team"}
		if diff := cmp.Diff(want, namesLike(t, withName(mlflowtest.MLflow(mlflowtest.WithGarbageCollection), "team"), "gc")); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
	})
	t.Run("[mlflow-15] schedule, policy, arguments and account", func(t *testing.T) {
		cron := cronJobOf(t, mlflowtest.MLflow(mlflowtest.WithGarbageCollection), plain, "mlflow-gc")
		if cron.Spec.Schedule != "15 3 * * 0" || cron.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent {
			t.Errorf("got schedule %q, policy %s", cron.Spec.Schedule, cron.Spec.ConcurrencyPolicy)
		}
		pod := cron.Spec.JobTemplate.Spec.Template.Spec
		want := []string{"gc", "--backend-store-uri=postgresql://tracker@db.data.example.com:5432/tracking", "--older-than=30d", "--all-workspaces"}
		if diff := cmp.Diff(want, pod.Containers[0].Args); diff != "" || pod.ServiceAccountName != "mlflow-gc-sa" {
			t.Errorf("account %s, arguments (-want +got):\n%s", pod.ServiceAccountName, diff)
		}
	})
	t.Run("[mlflow-15] permissions", func(t *testing.T) {
		role := typed[rbacv1.ClusterRole](t, mlflowtest.MLflow(mlflowtest.WithGarbageCollection), plain, "ClusterRole", "mlflow-gc")
		want := rbacv1.PolicyRule{APIGroups: []string{"mlflow.kubeflow.org"}, Resources: []string{"experiments"}, Verbs: []string{"get", "list", "update"}}
		if diff := cmp.Diff(want, role.Rules[0]); diff != "" {
			t.Errorf("rule (-want +got):\n%s", diff)
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, "secrets") && !slices.Equal(rule.ResourceNames, []string{artifactSecret}) {
				t.Error("garbage collection is allowed to read Secrets other than those of artifact stores")
			}
		}
		shared := typed[rbacv1.ClusterRoleBinding](t, mlflowtest.MLflow(mlflowtest.WithGarbageCollection), plain, "ClusterRoleBinding", "mlflow")
		if len(shared.Subjects) != 1 || shared.Subjects[0].Name != "mlflow-sa" {
			t.Errorf("subjects of the shared role: %v", shared.Subjects)
		}
		binding := typed[rbacv1.ClusterRoleBinding](t, mlflowtest.MLflow(mlflowtest.WithGarbageCollection), plain, "ClusterRoleBinding", "mlflow-gc")
		if binding.RoleRef.Name != "mlflow-gc" || len(binding.Subjects) != 1 || binding.Subjects[0].Name != "mlflow-gc-sa" {
			t.Errorf("got role %v and subjects %v", binding.RoleRef, binding.Subjects)
		}
	})
	t.Run("[mlflow-15] volume", func(t *testing.T) {
		pod := jobPod(t, mlflowtest.MLflow(mlflowtest.WithGarbageCollection, mlflowtest.WithStorage(corev1.PersistentVolumeClaimSpec{})), plain, "mlflow-gc")
		if !slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(v corev1.VolumeMount) bool { return v.MountPath == "/mlflow" }) {
			t.Errorf("got mounts %v", pod.Containers[0].VolumeMounts)
		}
	})
	t.Run("[D2] calls the server under its prefix", func(t *testing.T) {
		m := mlflowtest.MLflow(mlflowtest.WithGarbageCollection)
		pod := jobPod(t, m, plain, "mlflow-gc")
		if got := environment(pod.Containers[0])["MLFLOW_TRACKING_URI"]; got != AddressURL(m, plain) || !strings.HasSuffix(got, "/mlflow") {
			t.Errorf("MLFLOW_TRACKING_URI is %q", got)
		}
	})
	t.Run("[D3] uses spec.env and can list workspaces", func(t *testing.T) {
		m := mlflowtest.MLflow(mlflowtest.WithGarbageCollection, func(s *mlflowv1.MLflowSpec) {
			s.Env = []corev1.EnvVar{{Name: "AWS_REGION", Value: "eu"}, {Name: "MLFLOW_TRACKING_AUTH", Value: "own"}, {Name: envBackendStore, Value: "evil"}}
		})
		pod := jobPod(t, m, plain, "mlflow-gc")
		env := environment(pod.Containers[0])
		if env["AWS_REGION"] != "eu" || env["MLFLOW_TRACKING_AUTH"] != "own" || env[envBackendStore] == "evil" || len(env) != len(pod.Containers[0].Env) {
			t.Errorf("got environment %v", pod.Containers[0].Env)
		}
		role := typed[rbacv1.ClusterRole](t, m, plain, "ClusterRole", "mlflow-gc")
		if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "namespaces") }) {
			t.Errorf("got rules %v", role.Rules)
		}
	})
	t.Run("[D3] trusts the service CA without changing the TLS settings of databases", func(t *testing.T) {
		pod := jobPod(t, mlflowtest.MLflow(mlflowtest.WithGarbageCollection), openshift, "mlflow-gc")
		env := environment(pod.Containers[0])
		if len(pod.InitContainers) != 1 || env["REQUESTS_CA_BUNDLE"] != combinedBundle || env["PGSSLMODE"] != "" {
			t.Errorf("got init containers %v, environment %v", pod.InitContainers, env)
		}
		if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
			return v.ConfigMap != nil && v.ConfigMap.Name == "openshift-service-ca.crt"
		}) {
			t.Errorf("got volumes %v", pod.Volumes)
		}
		if pod := podOf(t, mlflowtest.MLflow(mlflowtest.WithGarbageCollection), openshift); len(pod.InitContainers) != 0 {
			t.Error("the server pod has an init container for the CA bundle")
		}
	})
	t.Run("[A-13] store URI in a Secret", func(t *testing.T) {
		m := mlflowtest.MLflow(mlflowtest.WithGarbageCollection, func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI, s.BackendStoreURIFrom = "", secretKey("db", "uri") })
		container := jobPod(t, m, plain, "mlflow-gc").Containers[0]
		want := []string{"python3.12", "-c", collectionProgram, "gc", "--older-than=30d", "--all-workspaces"}
		if diff := cmp.Diff(want, slices.Concat(container.Command, container.Args)); diff != "" {
			t.Errorf("command line (-want +got):\n%s", diff)
		}
	})
}

func TestTraceArchivalObjects(t *testing.T) {
	plain := platformInputs["plain"]
	for name, traceArchival := range map[string]*mlflowv1.TraceArchivalConfig{
		"[mlflow-26] nil": nil, "[mlflow-26] disabled": {Location: "s3://a", Retention: "1d"},
	} {
		t.Run(name, func(t *testing.T) {
			m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { s.TraceArchival = traceArchival })
			if got := namesLike(t, m, "archival"); got != nil {
				t.Errorf("unexpected objects: %v", got)
			}
			if got := deploymentOf(t, m, plain).String(); strings.Contains(got, "archival") {
				t.Errorf("the Deployment contains settings of archival: %s", got)
			}
		})
	}
	t.Run("[mlflow-26] objects with suffix", func(t *testing.T) {
		want := []string{"ServiceAccount/mlflow-trace-archival-sa", "ConfigMap/mlflow-trace-archival-config-team", "CronJob/mlflow-trace-archival-team"}
		if diff := cmp.Diff(want, namesLike(t, withName(mlflowtest.MLflow(mlflowtest.WithTraceArchival), "team"), "archival")); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
	})
	t.Run("[mlflow-26] CronJob", func(t *testing.T) {
		cron := cronJobOf(t, mlflowtest.MLflow(mlflowtest.WithTraceArchival, mlflowtest.WithStorage(corev1.PersistentVolumeClaimSpec{})), plain, "mlflow-trace-archival")
		pod := cron.Spec.JobTemplate.Spec.Template.Spec
		if cron.Spec.Schedule != "*/30 * * * *" || cron.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent || pod.ServiceAccountName != "mlflow-trace-archival-sa" {
			t.Errorf("got CronJob %+v", cron.Spec)
		}
		var paths []string
		for _, v := range pod.Containers[0].VolumeMounts {
			paths = append(paths, v.MountPath)
		}
		if diff := cmp.Diff([]string{"/tmp", "/etc/mlflow", "/mlflow"}, paths); diff != "" {
			t.Errorf("mounts (-want +got):\n%s", diff)
		}
	})
	t.Run("[mlflow-26] the file contains the fields of the spec, with strings as strings", func(t *testing.T) {
		config := typed[corev1.ConfigMap](t, mlflowtest.MLflow(mlflowtest.WithTraceArchival), plain, "ConfigMap", "mlflow-trace-archival-config")
		var got map[string]any
		if err := yaml.Unmarshal([]byte(config.Data["trace-archival.yaml"]), &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"trace_archival": map[string]any{
			"enabled": true, "location": "s3://archive", "retention": "14d", "max_traces_per_pass": float64(250),
			"long_retention_allowlist": []any{"7", "yes", "1e3"},
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("file (-want +got):\n%s", diff)
		}
	})
	t.Run("[mlflow-26] server and binding", func(t *testing.T) {
		m := mlflowtest.MLflow(mlflowtest.WithTraceArchival, func(s *mlflowv1.MLflowSpec) { s.Replicas = new(int32(3)) })
		pod := podOf(t, m, plain)
		env := environment(pod.Containers[0])
		if env["MLFLOW_TRACE_ARCHIVAL_CONFIG"] != "/etc/mlflow/trace-archival.yaml" || env[envJobExecution] != "false" {
			t.Errorf("got environment %v", env)
		}
		if !slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(v corev1.VolumeMount) bool { return v.MountPath == "/etc/mlflow" && v.ReadOnly }) {
			t.Errorf("got mounts %v", pod.Containers[0].VolumeMounts)
		}
		binding := typed[rbacv1.ClusterRoleBinding](t, m, plain, "ClusterRoleBinding", "mlflow")
		if len(binding.Subjects) != 2 || binding.Subjects[1].Name != "mlflow-trace-archival-sa" {
			t.Errorf("got subjects %v", binding.Subjects)
		}
		if mlflowtest.Object(buildObjects(t, m, plain), "Deployment", "mlflow-primary") != nil {
			t.Error("Deployment mlflow-primary exists")
		}
	})
	t.Run("[mlflow-26] files without storage", func(t *testing.T) {
		m := mlflowtest.MLflow(mlflowtest.WithTraceArchival, func(s *mlflowv1.MLflowSpec) { s.TraceArchival.Location = "file:///mlflow/a" })
		if _, err := Build(m, plain); err == nil || !strings.Contains(err.Error(), "storage must be enabled when traceArchival.location uses file-based storage") {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("[D19] the hash changes with the file", func(t *testing.T) {
		ref, hash := ArchivalReference(mlflowtest.MLflow(mlflowtest.WithTraceArchival))
		_, changedHash := ArchivalReference(mlflowtest.MLflow(mlflowtest.WithTraceArchival, func(s *mlflowv1.MLflowSpec) { s.TraceArchival.Retention = "15d" }))
		if hash == changedHash || ref.ID() != "ConfigMap/mlflow-trace-archival-config" {
			t.Errorf("hashes %s and %s of %s", hash, changedHash, ref.ID())
		}
	})
}

func TestCronJobsUsePodSettings(t *testing.T) {
	m := mlflowtest.MLflow(mlflowtest.WithGarbageCollection, mlflowtest.WithTraceArchival, func(s *mlflowv1.MLflowSpec) {
		s.TemporaryStorage = &mlflowv1.TemporaryStorageConfig{SizeLimit: new(resource.MustParse("3Gi"))}
		s.Resources = &corev1.ResourceRequirements{}
		cpuRequest := &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
		s.GarbageCollection.Resources, s.TraceArchival.Resources = cpuRequest, cpuRequest
		s.NodeSelector = map[string]string{"disk": "fast"}
		s.ServiceAccountName = "mlflow-gc-sa"
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("one")}}
	})
	for _, name := range []string{"mlflow-gc", "mlflow-trace-archival"} {
		pod := jobPod(t, m, platformInputs["plain"], name)
		if size := pod.Volumes[0].EmptyDir.SizeLimit; size.String() != "3Gi" {
			t.Errorf("[mlflow-23] %s has %s of temporary storage", name, size)
		}
		got := pod.Containers[0].Resources
		if _, limited := got.Limits[corev1.ResourceCPU]; limited || got.Limits.Memory().String() != "512Mi" || got.Requests.Cpu().String() != "1" {
			t.Errorf("[D5] resources of %s: %v", name, got)
		}
		if pod.NodeSelector["disk"] != "fast" || pod.SecurityContext.RunAsNonRoot == nil || len(pod.ResourceClaims) != 0 {
			t.Errorf("%s does not have the pod settings of the server: %+v", name, pod)
		}
		labels := cronJobOf(t, m, platformInputs["plain"], name).Spec.JobTemplate.Spec.Template.Labels
		if labels[labelInstance] != "mlflow" || labels[LabelApp] != name {
			t.Errorf("labels of %s: %v", name, labels)
		}
	}
	accounts := 0
	for _, o := range buildObjects(t, m, platformInputs["plain"]) {
		if o.GetKind() == "ServiceAccount" {
			accounts++
		}
	}
	if accounts != 2 {
		t.Errorf("%d ServiceAccounts, want 2, because one is shared", accounts)
	}
	for _, name := range []string{"mlflow-gc", "mlflow-trace-archival"} {
		pod := jobPod(t, mlflowtest.MLflow(mlflowtest.WithGarbageCollection, mlflowtest.WithTraceArchival), platformInputs["plain"], name)
		if size := pod.Volumes[0].EmptyDir.SizeLimit; size.String() != "1Gi" {
			t.Errorf("[mlflow-23] %s has %s of temporary storage", name, size)
		}
	}
}
