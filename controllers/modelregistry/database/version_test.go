package database

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func server(image string, changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
	for _, change := range changes {
		change(d)
	}
	return d
}

func setRolledOut(d *appsv1.Deployment) {
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
}

func setCompletedRollout(d *appsv1.Deployment) {
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Reason: "NewReplicaSetAvailable"}}
}

func setUnobserved(d *appsv1.Deployment) { d.Status.ObservedGeneration = 1 }

func TestImageOfData(t *testing.T) {
	empty, postgres15 := EmptyAnnotations(), Image{"postgres:15", 15}.Annotations()
	for name, test := range map[string]struct {
		claim  map[string]string
		server *appsv1.Deployment
		want   Image
	}{
		"new claim without a server":                  {empty, &appsv1.Deployment{}, Image{}},
		"new claim, server is unavailable":            {empty, server("postgres:16", setCompletedRollout), Image{}},
		"new claim, server is rolled out":             {empty, server("postgres:16", setRolledOut), Image{"postgres:16", 16}},
		"annotated claim without a server":            {postgres15, &appsv1.Deployment{}, Image{"postgres:15", 15}},
		"annotated claim, new image is unavailable":   {postgres15, server("postgres:16", setCompletedRollout), Image{"postgres:15", 15}},
		"annotated claim, status is outdated":         {postgres15, server("postgres:16", setRolledOut, setUnobserved), Image{"postgres:15", 15}},
		"annotated claim, new image is rolled out":    {postgres15, server("postgres:16", setRolledOut), Image{"postgres:16", 16}},
		"annotated claim, image of unknown version":   {postgres15, server("db:x", setRolledOut), Image{"postgres:15", 15}},
		"claim without annotations, rolled out":       {nil, server("postgres:15", setRolledOut), Image{"postgres:15", 15}},
		"claim without annotations, node is down":     {nil, server("postgres:15", setCompletedRollout), Image{"postgres:15", 15}},
		"claim without annotations, never rolled out": {nil, server("postgres:15"), Image{}},
		"major version of the spec":                   {empty, server("mine@sha256:1", setRolledOut), Image{"mine@sha256:1", 14}},
		"invalid annotations":                         {map[string]string{annotationMajor: "x", annotationImage: "y"}, &appsv1.Deployment{}, Image{Name: "y"}},
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: test.claim}}
		if diff := cmp.Diff(test.want, ImageOfData(claim, test.server, NewImage("mine@sha256:1", new(int32(14))))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An unknown version does not replace the known one in the annotations.
func TestImageAnnotations(t *testing.T) {
	if got := (Image{Name: "x"}).Annotations(); len(got) > 0 {
		t.Errorf("got annotations %v for an image of unknown version, want none", got)
	}
}

func TestCheckImage(t *testing.T) {
	for name, test := range map[string]struct {
		desired, dataImage Image
		reason             string
		parts              []string
	}{
		"same major version":          {Image{"postgres:16.4", 16}, Image{"postgres:16.3", 16}, "", nil},
		"no data yet":                 {Image{"postgres:17", 17}, Image{}, "", nil},
		"newer major version":         {Image{"postgres:17", 17}, Image{"postgres:16", 16}, ReasonMajorDiffers, []string{"spec.postgres.image is postgres:17 with PostgreSQL 17", "PostgreSQL 16 wrote", "stays at image postgres:16", "docs/production.md"}},
		"older major version":         {Image{"postgres:15", 15}, Image{"postgres:16", 16}, ReasonMajorDiffers, []string{"PostgreSQL 15"}},
		"unknown version":             {Image{"mine", 0}, Image{"postgres:16", 16}, ReasonMajorUnknown, []string{"spec.postgres.image is mine", "Set spec.postgres.majorVersion"}},
		"same image, unknown version": {Image{"mine", 0}, Image{"mine", 16}, "", nil},
	} {
		reason, message := CheckImage(test.desired, test.dataImage, "a-claim", "spec.postgres.image", test.dataImage.Name)
		if reason != test.reason || (message == "") != (reason == "") {
			t.Errorf("%s: unexpected reason %q or message %q", name, reason, message)
		}
		for _, part := range test.parts {
			if !strings.Contains(message, part) {
				t.Errorf("%s: message %q does not contain %q", name, message, part)
			}
		}
	}
}

func TestTrustedImage(t *testing.T) {
	const desired, setting = "quay.io/sclorg/postgresql-17-c10s:latest", "quay.io/team/db@sha256:1"
	for name, test := range map[string]struct{ recorded, running, want string }{
		"other version of the desired image":        {"quay.io/sclorg/postgresql-16-c10s:1", "", "quay.io/sclorg/postgresql-16-c10s:1"},
		"other version of the image of settings":    {"quay.io/team/db:15", "", "quay.io/team/db:15"},
		"running image":                             {"example.com/mine:1", "example.com/mine:1", "example.com/mine:1"},
		"image of another repository":               {"evil/img:1", "", ""},
		"image of another registry":                 {"evil.io/sclorg/postgresql-16-c10s:1", "", ""},
		"image of another repository, other server": {"evil/img:1", "postgres:16", "postgres:16"},
		"no image": {"", "", ""},
	} {
		if got := TrustedImage(test.recorded, test.running, desired, setting); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
