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

func setServing(d *appsv1.Deployment) {
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
}

func setServed(d *appsv1.Deployment) {
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Reason: "NewReplicaSetAvailable"}}
}

func setUnobserved(d *appsv1.Deployment) { d.Status.ObservedGeneration = 1 }

func TestImageOfData(t *testing.T) {
	none, fifteen := EmptyAnnotations(), Image{"postgres:15", 15}.Annotations()
	for name, c := range map[string]struct {
		claim  map[string]string
		server *appsv1.Deployment
		want   Image
	}{
		"a new claim":                              {none, &appsv1.Deployment{}, Image{}},
		"a new claim, whose server starts":         {none, server("postgres:16", setServed), Image{}},
		"a new claim, whose server has started":    {none, server("postgres:16", setServing), Image{"postgres:16", 16}},
		"recorded, without a server":               {fifteen, &appsv1.Deployment{}, Image{"postgres:15", 15}},
		"recorded, another one does not start":     {fifteen, server("postgres:16", setServed), Image{"postgres:15", 15}},
		"recorded, status of the previous version": {fifteen, server("postgres:16", setServing, setUnobserved), Image{"postgres:15", 15}},
		"recorded, and upgraded by hand":           {fifteen, server("postgres:16", setServing), Image{"postgres:16", 16}},
		"recorded, the image runs but is unnamed":  {fifteen, server("db:x", setServing), Image{"postgres:15", 15}},
		"of an older release":                      {nil, server("postgres:15", setServing), Image{"postgres:15", 15}},
		"of an older release, its node is down":    {nil, server("postgres:15", setServed), Image{"postgres:15", 15}},
		"of an older release, never started":       {nil, server("postgres:15"), Image{}},
		"stated by the spec":                       {none, server("mine@sha256:1", setServing), Image{"mine@sha256:1", 14}},
		"edited by hand":                           {map[string]string{annotationMajor: "x", annotationImage: "y"}, &appsv1.Deployment{}, Image{Name: "y"}},
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: c.claim}}
		if diff := cmp.Diff(c.want, ImageOfData(claim, c.server, NewImage("mine@sha256:1", new(int32(14))))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An unknown version is not recorded, so that a known one is kept.
func TestImageAnnotations(t *testing.T) {
	if got := (Image{Name: "x"}).Annotations(); len(got) > 0 {
		t.Errorf("got annotations %v of an unpinned image, want none", got)
	}
}

func TestCheckImage(t *testing.T) {
	for name, c := range map[string]struct {
		wanted, wrote Image
		reason        string
		parts         []string
	}{
		"same major version":  {Image{"postgres:16.4", 16}, Image{"postgres:16.3", 16}, "", nil},
		"no data yet":         {Image{"postgres:17", 17}, Image{}, "", nil},
		"newer":               {Image{"postgres:17", 17}, Image{"postgres:16", 16}, ReasonMajorDiffers, []string{"spec.postgres.image is postgres:17 with PostgreSQL 17", "PostgreSQL 16 wrote", "stays at image postgres:16", "docs/production.md"}},
		"older":               {Image{"postgres:15", 15}, Image{"postgres:16", 16}, ReasonMajorDiffers, []string{"PostgreSQL 15"}},
		"unknown":             {Image{"mine", 0}, Image{"postgres:16", 16}, ReasonMajorUnknown, []string{"spec.postgres.image is mine", "Set spec.postgres.majorVersion"}},
		"unknown, but it ran": {Image{"mine", 0}, Image{"mine", 16}, "", nil},
	} {
		reason, message := CheckImage(c.wanted, c.wrote, "a-claim", "spec.postgres.image")
		if reason != c.reason || (message == "") != (reason == "") {
			t.Errorf("%s: unexpected reason %q or message %q", name, reason, message)
		}
		for _, part := range c.parts {
			if !strings.Contains(message, part) {
				t.Errorf("%s: %q says nothing of %q", name, message, part)
			}
		}
	}
}
