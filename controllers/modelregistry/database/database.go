package database

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// Annotations of a claim with the PostgreSQL version that wrote its data: another major version cannot read it. A new claim has noData as
// its major version.
const (
	annotationMajor = "modelregistry.opendatahub.io/postgres-major-version"
	annotationImage = "modelregistry.opendatahub.io/postgres-image"
	noData          = "none"
)

// Image is an image and its major version of PostgreSQL, 0 if unknown.
type Image struct {
	Name  string
	Major int32
}

// NewImage returns an image with the major version of the spec, or else the one in its name.
func NewImage(name string, major *int32) Image {
	if major != nil {
		return Image{name, *major}
	}
	return Image{name, resources.PostgresMajorVersion(name)}
}

// EmptyAnnotations returns the annotations of a claim without data.
func EmptyAnnotations() map[string]string { return map[string]string{annotationMajor: noData} }

// ImageOfData returns the image that wrote the data of a claim: that of the server if it is rolled out and its major version is known, or
// else that of the annotations. For a claim without annotations, created by an earlier release, an earlier completed rollout is enough.
func ImageOfData(claim *corev1.PersistentVolumeClaim, server *appsv1.Deployment, desired Image) Image {
	recorded := Image{Name: claim.Annotations[annotationImage]}
	recordedMajor := claim.Annotations[annotationMajor]
	if major, err := strconv.ParseInt(recordedMajor, 10, 32); err == nil {
		recorded.Major = int32(major)
	}
	if len(server.Spec.Template.Spec.Containers) == 0 {
		return recorded
	}
	running := desired
	if name := server.Spec.Template.Spec.Containers[0].Image; name != desired.Name {
		running = NewImage(name, nil)
	}
	if running.Major != 0 && (isRolledOut(server) || recordedMajor == "" && hasCompletedRollout(server)) {
		return running
	}
	return recorded
}

// isRolledOut reports whether all pods are available and of the current template.
func isRolledOut(d *appsv1.Deployment) bool {
	s := &d.Status
	return s.ObservedGeneration == d.Generation && s.AvailableReplicas > 0 && s.UpdatedReplicas == s.Replicas && s.AvailableReplicas == s.Replicas
}

// hasCompletedRollout reports whether a rollout has completed, even if no pod is available now.
func hasCompletedRollout(d *appsv1.Deployment) bool {
	return conditions.DeploymentCondition(d, appsv1.DeploymentProgressing).Reason == "NewReplicaSetAvailable"
}

// Annotations returns the annotations of a claim with data of this image, nil if its major version is unknown.
func (i Image) Annotations() map[string]string {
	if i.Major == 0 {
		return nil
	}
	return map[string]string{annotationMajor: strconv.Itoa(int(i.Major)), annotationImage: i.Name}
}

// Reasons of condition DatabaseImageInSync.
const (
	ReasonMajorDiffers = "MajorVersionDiffers"
	ReasonMajorUnknown = "MajorVersionUnknown"
)

// TrustedImage returns the image for data that the desired image cannot read: the recorded one if it is the running one, or if its
// repository is that of an allowed image, ignoring the PostgreSQL version in the name. Otherwise it returns the running image, "" without
// one. The annotations of a claim are not checked by admission.
func TrustedImage(recorded, running string, allowed ...string) string {
	isRelated := func(image string) bool {
		return resources.PostgresRepository(image) == resources.PostgresRepository(recorded)
	}
	if recorded != "" && (recorded == running || slices.ContainsFunc(allowed, isRelated)) {
		return recorded
	}
	return running
}

// CheckImage returns reason and message if a desired image must not run on the data of a claim, or empty strings. field is the setting of
// the desired image, and pinned the image that runs instead, "" for none.
func CheckImage(desired, dataImage Image, claim, field, pinned string) (reason, message string) {
	if dataImage.Major == 0 || desired.Major == dataImage.Major || desired.Name == dataImage.Name {
		return "", ""
	}
	pinnedMessage := fmt.Sprintf("The database stays at image %s.", pinned)
	if pinned == "" {
		pinnedMessage = fmt.Sprintf("The database does not start, because image %q in the annotations of the claim is not from a configured repository.", dataImage.Name)
	}
	if desired.Major == 0 {
		return ReasonMajorUnknown, fmt.Sprintf("%s is %s, whose name does not include its major version of PostgreSQL, and PostgreSQL %d wrote the data in "+
			"PersistentVolumeClaim %s, which no other major version can read. %s Set spec.postgres.majorVersion to the version in the image",
			field, desired.Name, dataImage.Major, claim, pinnedMessage)
	}
	return ReasonMajorDiffers, fmt.Sprintf("%s is %s with PostgreSQL %d, which cannot read the data in PersistentVolumeClaim %s that PostgreSQL %d wrote. "+
		"%s Set spec.postgres.image to an image of PostgreSQL %d, or move the data: see https://github.com/odh-platform/odh-platform-operator/blob/main/docs/production.md#change-the-major-version-of-postgresql",
		field, desired.Name, desired.Major, claim, dataImage.Major, pinnedMessage, dataImage.Major)
}

// Reasons of condition BackupReady.
const (
	ReasonSucceeded = "BackupSucceeded"
	ReasonPending   = "BackupPending"
	ReasonFailed    = "BackupFailed"
	ReasonSuspended = "BackupSuspended"
	ReasonRefused   = "BackupRefused"
	ReasonForeign   = "BackupClaimForeign"
)

// BackupCondition returns a condition without type for the backups of a CronJob. While a Job runs, earlier failures are ignored.
func BackupCondition(cronJob *batchv1.CronJob) *metav1.Condition {
	started, succeeded := cronJob.Status.LastScheduleTime, cronJob.Status.LastSuccessfulTime
	last := "no backup has succeeded yet"
	if succeeded != nil {
		last = "the last successful backup ended at " + succeeded.UTC().Format(time.RFC3339)
	}
	switch {
	case cronJob.Spec.Suspend != nil && *cronJob.Spec.Suspend:
		return &metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonSuspended, Message: "No backups are made (" + last + "): remove spec.postgres.backup.suspend"}
	case started != nil && len(cronJob.Status.Active) == 0 && (succeeded == nil || succeeded.Before(started)):
		return &metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonFailed, Message: fmt.Sprintf(
			"The backup of %s failed (%s): for the cause, run kubectl -n %s logs -l app.kubernetes.io/name=%s",
			started.UTC().Format(time.RFC3339), last, cronJob.Namespace, cronJob.Name)}
	case succeeded == nil:
		return &metav1.Condition{Status: metav1.ConditionUnknown, Reason: ReasonPending, Message: "No backup has been made yet; the schedule is " + cronJob.Spec.Schedule}
	}
	return &metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonSucceeded, Message: "Backups are made: " + last}
}
