package database

import (
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// Annotations of a claim say which PostgreSQL wrote the data in it: another major version cannot read them. A new claim has the first
// one with the value of nothing.
const (
	annotationMajor = "modelregistry.opendatahub.io/postgres-major-version"
	annotationImage = "modelregistry.opendatahub.io/postgres-image"
	noData          = "none"
)

// Image is an image with the major version of PostgreSQL in it, 0 if that is unknown.
type Image struct {
	Name  string
	Major int32
}

// Wanted is the image that a spec asks for; stated is the version that it states.
func NewImage(name string, stated *int32) Image {
	if stated != nil {
		return Image{name, *stated}
	}
	return Image{name, resources.PostgresMajor(name)}
}

// Empty are the annotations of a claim without data.
func EmptyAnnotations() map[string]string { return map[string]string{annotationMajor: noData} }

// Wrote returns the image whose PostgreSQL wrote the data in a claim: that of the server which runs on it, or else that which the claim
// names. A claim that says nothing was made before there were annotations, so what once ran to the end of its rollout counts.
func ImageOfData(claim *corev1.PersistentVolumeClaim, server *appsv1.Deployment, wanted Image) Image {
	recorded := Image{Name: claim.Annotations[annotationImage]}
	said := claim.Annotations[annotationMajor]
	if major, err := strconv.ParseInt(said, 10, 32); err == nil {
		recorded.Major = int32(major)
	}
	if len(server.Spec.Template.Spec.Containers) == 0 {
		return recorded
	}
	live := wanted
	if name := server.Spec.Template.Spec.Containers[0].Image; name != wanted.Name {
		live = NewImage(name, nil)
	}
	if live.Major != 0 && (isRolledOut(server) || said == "" && hasCompletedRollout(server)) {
		return live
	}
	return recorded
}

// runs reports whether the pods of the present template serve.
func isRolledOut(d *appsv1.Deployment) bool {
	s := &d.Status
	return s.ObservedGeneration == d.Generation && s.AvailableReplicas > 0 && s.UpdatedReplicas == s.Replicas && s.AvailableReplicas == s.Replicas
}

// ranOnce reports whether a rollout came to its end, wherever its pods are now.
func hasCompletedRollout(d *appsv1.Deployment) bool {
	return conditions.OfDeployment(d, appsv1.DeploymentProgressing).Reason == "NewReplicaSetAvailable"
}

// Annotations record on a claim what wrote its data; there are none while that is unknown.
func (i Image) Annotations() map[string]string {
	if i.Major == 0 {
		return nil
	}
	return map[string]string{annotationMajor: strconv.Itoa(int(i.Major)), annotationImage: i.Name}
}

// Reasons for which an image is not run.
const (
	ReasonMajorDiffers = "MajorVersionDiffers"
	ReasonMajorUnknown = "MajorVersionUnknown"
)

// Refusal says why a wanted image must not run on the data of a claim that another one wrote; without a reason it may. The field is
// that which names the wanted image.
func CheckImage(wanted, wrote Image, claim, field string) (reason, message string) {
	if wrote.Major == 0 || wanted.Major == wrote.Major || wanted.Name == wrote.Name {
		return "", ""
	}
	stays := fmt.Sprintf("The database stays at image %s.", wrote.Name)
	if wanted.Major == 0 {
		return ReasonMajorUnknown, fmt.Sprintf("%s is %s, whose name does not tell its major version of PostgreSQL, and PostgreSQL %d wrote the data in "+
			"PersistentVolumeClaim %s, which no other major version can read. %s Set spec.postgres.majorVersion to the version in the image",
			field, wanted.Name, wrote.Major, claim, stays)
	}
	return ReasonMajorDiffers, fmt.Sprintf("%s is %s with PostgreSQL %d, which cannot read the data in PersistentVolumeClaim %s that PostgreSQL %d wrote. "+
		"%s Set spec.postgres.image to an image of PostgreSQL %d, or move the data: see \"Change the major version of PostgreSQL\" in docs/production.md",
		field, wanted.Name, wanted.Major, claim, wrote.Major, stays, wrote.Major)
}

// Reasons of the condition on backups.
const (
	ReasonSucceeded = "BackupSucceeded"
	ReasonPending   = "BackupPending"
	ReasonFailed    = "BackupFailed"
	ReasonSuspended = "BackupSuspended"
	ReasonRefused   = "BackupRefused"
	ReasonForeign   = "BackupClaimForeign"
)

// BackupsOf judges backups by their CronJob, in a condition without a type. While one runs, what is known of the one before it holds.
func BackupCondition(c *batchv1.CronJob) *metav1.Condition {
	began, succeeded := c.Status.LastScheduleTime, c.Status.LastSuccessfulTime
	last := "there is none yet"
	if succeeded != nil {
		last = "the last one ended at " + succeeded.UTC().Format(time.RFC3339)
	}
	switch {
	case c.Spec.Suspend != nil && *c.Spec.Suspend:
		return &metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonSuspended, Message: "No backups are made (" + last + "): remove spec.postgres.backup.suspend"}
	case began != nil && len(c.Status.Active) == 0 && (succeeded == nil || succeeded.Before(began)):
		return &metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonFailed, Message: fmt.Sprintf(
			"The backup of %s failed (%s): its log says why, see kubectl -n %s logs -l app.kubernetes.io/name=%s",
			began.UTC().Format(time.RFC3339), last, c.Namespace, c.Name)}
	case succeeded == nil:
		return &metav1.Condition{Status: metav1.ConditionUnknown, Reason: ReasonPending, Message: "No backup has been made yet; the schedule is " + c.Spec.Schedule}
	}
	return &metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonSucceeded, Message: "Backups are made: " + last}
}
