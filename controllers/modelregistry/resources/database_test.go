package resources

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// [modelregistry-34]
func TestDatabaseDeployment(t *testing.T) {
	d := decodeObject[appsv1.Deployment](t, buildDatabaseObjects(t, registrytest.Registry(registrytest.UseGeneratedDatabase), plain), "Deployment", "team-a-postgres")
	if d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("got strategy %v, want Recreate, because only one pod may use the volume", d.Spec.Strategy)
	}
	labels := map[string]string{"app": "team-a", "component": "model-registry", "app.kubernetes.io/name": "team-a-postgres"}
	if diff := cmp.Diff(labels, d.Spec.Selector.MatchLabels); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(labels, d.Spec.Template.Labels); diff != "" {
		t.Errorf("labels of pods (-want +got):\n%s", diff)
	}
	c := d.Spec.Template.Spec.Containers[0]
	from := func(key string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "team-a-postgres-credentials"}, Key: key,
		}}
	}
	env := []corev1.EnvVar{
		{Name: "POSTGRESQL_DATABASE", Value: "model_registry"},
		{Name: "POSTGRESQL_USER", ValueFrom: from("username")}, {Name: "POSTGRESQL_PASSWORD", ValueFrom: from("password")},
	}
	if diff := cmp.Diff(env, c.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if v := d.Spec.Template.Spec.Volumes[0]; v.PersistentVolumeClaim.ClaimName != "team-a-postgres-storage" || c.VolumeMounts[0].MountPath != "/var/lib/pgsql/data" {
		t.Errorf("volume %+v at %s", v, c.VolumeMounts[0].MountPath)
	}
	for delay, p := range map[int32]*corev1.Probe{5: c.ReadinessProbe, 30: c.LivenessProbe} {
		if p.Exec.Command[0] != "/usr/libexec/check-container" || p.InitialDelaySeconds != delay || p.PeriodSeconds != 10 || p.TimeoutSeconds != 5 || p.FailureThreshold != 3 {
			t.Errorf("probe %+v", p)
		}
	}
	if c.Image != "quay.io/example/postgresql:16" || c.Ports[0].ContainerPort != 5432 || len(d.Spec.Template.Spec.Containers) != 1 {
		t.Errorf("container %+v", c)
	}
}

func TestDatabaseService(t *testing.T) {
	s := decodeObject[corev1.Service](t, buildDatabaseObjects(t, registrytest.Registry(registrytest.UseGeneratedDatabase), plain), "Service", "team-a-postgres")
	if diff := cmp.Diff(map[string]string{"app": "team-a", "app.kubernetes.io/name": "team-a-postgres"}, s.Spec.Selector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	if len(s.Spec.Ports) != 1 || s.Spec.Ports[0].Name != "" || s.Spec.Ports[0].Port != 5432 || s.Spec.Ports[0].TargetPort.IntVal != 5432 {
		t.Errorf("ports %+v", s.Spec.Ports)
	}
	want := map[string]string{
		"app": "team-a-postgres", "component": "model-registry-postgres", "app.kubernetes.io/component": "database",
		"app.kubernetes.io/name": "team-a-postgres", "app.kubernetes.io/instance": "team-a-postgres",
		"app.kubernetes.io/created-by": "model-registry-operator", "app.kubernetes.io/managed-by": "model-registry-operator",
		"app.kubernetes.io/part-of":         "model-registry",
		"platform.opendatahub.io/component": "modelregistry", "platform.opendatahub.io/operator": "odh-platform-operator",
	}
	if diff := cmp.Diff(want, s.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// [D12] A generated database has the name, size and class of the spec.
func TestDatabaseFollowsTheSpec(t *testing.T) {
	objects := buildDatabaseObjects(t, registrytest.Registry(registrytest.UseGeneratedDatabase, registrytest.SetStorageAndRetention), plain)
	claim := decodeObject[corev1.PersistentVolumeClaim](t, objects, "PersistentVolumeClaim", "team-a-postgres-storage").Spec
	want := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new("fast"),
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")}},
	}
	if diff := cmp.Diff(want, claim); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
	env := podOf(t, objects, "team-a-postgres").Containers[0].Env
	if env[0].Value != "team_models" {
		t.Errorf("database %q", env[0].Value)
	}
	standard := decodeObject[corev1.PersistentVolumeClaim](t, buildDatabaseObjects(t, registrytest.Registry(registrytest.UseGeneratedDatabase), plain), "PersistentVolumeClaim", "team-a-postgres-storage").Spec
	if size := standard.Resources.Requests[corev1.ResourceStorage]; size.String() != "5Gi" || standard.StorageClassName != nil {
		t.Errorf("got claim %+v without spec.postgres.storage, want 5Gi and no storage class", standard)
	}
}

// [D7] Claim and Secret are not among the applied objects: they are created once, and later only the claim is expanded.
func TestDataIsNotInBuild(t *testing.T) {
	m := registrytest.Registry(registrytest.UseGeneratedDatabase, registrytest.SetStorageAndRetention)
	desired, err := BuildDatabase(m, plain)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range append(renderObjects(t, m, desired), buildObjects(t, m, plain)...) {
		if o.GetKind() == "PersistentVolumeClaim" || o.GetKind() == "Secret" {
			t.Errorf("%s %s is applied", o.GetKind(), o.GetName())
		}
	}
}

// Data is deleted with its registry only if the retention policy is Delete.
func TestRetention(t *testing.T) {
	for policy, owned := range map[v1beta1.RetentionPolicy]bool{"": false, v1beta1.RetainData: false, v1beta1.DeleteData: true} {
		m := registrytest.Registry(registrytest.UseGeneratedDatabase, func(s *v1beta1.ModelRegistrySpec) { s.Postgres.RetentionPolicy = policy })
		for _, o := range buildDatabaseObjects(t, m, plain) {
			isData := o.GetKind() == "Secret" || o.GetKind() == "PersistentVolumeClaim"
			if got := metav1.IsControlledBy(o, m); got != (owned || !isData) {
				t.Errorf("%q: %s %s is controlled: %t", policy, o.GetKind(), o.GetName(), got)
			}
		}
	}
}

func TestCredentials(t *testing.T) {
	for name, test := range map[string]struct {
		database string
		want     map[string][]byte
	}{
		"default name":       {"model_registry", map[string][]byte{"username": []byte("me"), "password": []byte("pw")}},
		"[D12] another name": {"models", map[string][]byte{"username": []byte("me"), "password": []byte("pw"), "database": []byte("models")}},
	} {
		m := registrytest.Registry(registrytest.UseGeneratedDatabase)
		got := decodeObject[corev1.Secret](t, renderObjects(t, m, apply.Desired{CredentialsSecret(m, "me", test.database, "pw")}), "Secret", "team-a-postgres-credentials")
		if diff := cmp.Diff(test.want, got.Data); diff != "" || len(got.StringData) != 0 || len(got.Annotations) != 0 {
			t.Errorf("%s: annotations %v, data (-want +got):\n%s", name, got.Annotations, diff)
		}
	}
}

// [modelregistry-68]
func TestNewPassword(t *testing.T) {
	safe, seen := regexp.MustCompile(`^[-_A-Za-z0-9]{22}==$`), map[string]bool{}
	for range 100 {
		password := resources.NewPassword()
		if !safe.MatchString(password) || seen[password] {
			t.Fatalf("password %q", password)
		}
		seen[password] = true
	}
}

// [D12] A name that the database image does not accept is rejected with an error that names the field.
func TestDatabaseNames(t *testing.T) {
	for _, valid := range []string{"", "models", "_m", "Models_2", strings.Repeat("a", 63)} {
		if err := CheckIdentifier("spec.postgres.username", valid); err != nil {
			t.Errorf("%q: unexpected error: %v", valid, err)
		}
	}
	for _, invalid := range []string{"model-registry", "2models", "a b", "a\nb", "a;drop", strings.Repeat("a", 64), "ü"} {
		m := registrytest.Registry(registrytest.UseGeneratedDatabase, func(s *v1beta1.ModelRegistrySpec) { s.Postgres.Database = invalid })
		if _, err := BuildDatabase(m, plain); err == nil || !strings.Contains(err.Error(), "spec.postgres.database") {
			t.Errorf("%q: got error %v, want one containing 'spec.postgres.database'", invalid, err)
		}
	}
}

// Names are within the limits of Kubernetes and remain unique.
func TestLongNames(t *testing.T) {
	long, other := registrytest.SetName(registrytest.Registry(registrytest.UseGeneratedDatabase, registrytest.AddProxy), strings.Repeat("a", 62)+"b"), registrytest.SetName(registrytest.Registry(registrytest.UseGeneratedDatabase, registrytest.AddProxy), strings.Repeat("a", 62)+"c")
	if DatabaseName(long) == DatabaseName(other) || routeHost(long) == routeHost(other) {
		t.Errorf("long names collide in %s or %s", DatabaseName(long), routeHost(long))
	}
	for _, o := range append(buildObjects(t, long, gateway), buildDatabaseObjects(t, long, gateway)...) {
		limit := 253
		if o.GetKind() == "Service" {
			limit = 63
		}
		if len(o.GetName()) > limit {
			t.Errorf("%s %s is %d long", o.GetKind(), o.GetName(), len(o.GetName()))
		}
		for key, value := range o.GetLabels() {
			if len(value) > 63 {
				t.Errorf("label %s of %s %s is %d long", key, o.GetKind(), o.GetName(), len(value))
			}
		}
	}
	if host, _, _ := strings.Cut(routeHost(long), "."); len(host) > 63 {
		t.Errorf("host %s", host)
	}
	for name, got := range map[string]string{"team-a-postgres": DatabaseName(registrytest.Registry()), "team-a-rest": routeHostLabel(registrytest.Registry())} {
		if got != name {
			t.Errorf("a short name became %s, want %s", got, name)
		}
	}
}
