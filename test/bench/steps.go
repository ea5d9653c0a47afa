package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

const (
	namespace = "opendatahub"
	image     = "quay.io/example/mlflow:v3"
	// warmUp is how long a process runs before its memory is measured.
	warmUp = 10 * time.Second
	// rounds is the number of repetitions of a measurement that varies.
	rounds = 5
	// pollInterval is short compared with the measured times.
	pollInterval = 10 * time.Millisecond
)

// measureStart starts the manager in a cluster without objects to reconcile.
func (b *bench) measureStart(ctx context.Context) error {
	installed, err := operator.Install(ctx, b.instance, "config/default")
	if err != nil {
		return err
	}
	routing, err := b.installModelMesh(ctx, installed.ServiceAccount.Namespace)
	if err != nil {
		return err
	}
	start, err := b.audit.Position()
	if err != nil {
		return err
	}
	b.options = operator.Options{
		Binary: b.binary, ServiceAccount: installed.ServiceAccount, WebhookPort: installed.WebhookPort, Args: []string{"--metrics-secure=false"},
		Env: append(routing, "MLFLOW_IMAGE="+image, "MLFLOW_URL=https://gateway.example.com"),
	}
	if b.profiles != "" {
		b.options.Args = []string{"--pprof"}
		if err := b.authorizeProfiles(ctx); err != nil {
			return err
		}
	}
	if b.manager, err = operator.Start(ctx, b.instance, b.options); err != nil {
		return err
	}
	if err := b.pause(ctx, warmUp); err != nil {
		return err
	}
	reads, writes, others, err := b.requests(start)
	if err != nil {
		return err
	}
	rss, err := b.residentMemory()
	if err != nil {
		return err
	}
	b.addFigure("idle resident memory, no objects", mebibytes(rss), "<= 60 MiB", "312 MiB in total")
	b.addFigure("first start, no objects", fmt.Sprintf("%d reads, %d writes, %s", reads, writes, others), "a write for each object that it creates or completes", "36 reads, 20 writes")
	return nil
}

// measureIdleRestart counts the reads of a second process when no object has changed. `-list` prints each request. With all components,
// a process sends 37 reads, each once; the target is older than most components. Watched objects need no reads, since a watch starts with
// the existing objects. The reads are:
//
//   - 8 lists of single objects that are watched by name, because the ServiceAccount cannot read other objects of their kind: domain
//     and TLS profile of the platform, settings, location of KubeRay;
//   - 7 lists of legacy objects, which are not cached because they lack the label of the operator;
//   - 3 settings of the legacy AppWrapper and Ray controllers, which must be known before the first reconcile;
//   - 10 for the webhook certificate and the CA bundle in each object that contains it;
//   - 3 for webhooks of the CodeFlare operator without an endpoint, and for the storage version of ModelRegistry;
//   - 6 for the namespace of the manager, which ModelMesh always serves: two controllers need its UID, the etcd Secret is not cached,
//     and the fields of each applied object are checked once.
func (b *bench) measureIdleRestart(ctx context.Context) error {
	return b.countRestartRequests(ctx, "next start, no objects", "<= 10 reads, 0 writes", "")
}

// newMLflow returns an MLflow with a volume and without CronJobs.
func newMLflow() *mlflowv1.MLflow {
	m := &mlflowv1.MLflow{
		TypeMeta:   metav1.TypeMeta{APIVersion: mlflowv1.GroupVersion.String(), Kind: "MLflow"},
		ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName},
	}
	m.Spec.BackendStoreURI, m.Spec.ArtifactsDestination, m.Spec.ServeArtifacts = "sqlite:////mlflow/mlflow.db", "file:///mlflow/artifacts", true
	m.Spec.Storage = &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	return m
}

// children returns the children of the MLflow as rendered by the manager, without owner references.
func (b *bench) children(ctx context.Context) ([]*unstructured.Unstructured, error) {
	manifest, err := yaml.Marshal(newMLflow())
	if err != nil {
		return nil, fmt.Errorf("encoding the MLflow: %w", err)
	}
	command := exec.CommandContext(ctx, b.binary, "render", "-f", "-", "--platform=openshift", "--namespace="+namespace)
	command.Stdin, command.Env = bytes.NewReader(manifest), []string{"MLFLOW_IMAGE=" + image, "MLFLOW_URL=https://gateway.example.com"}
	output, err := command.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("rendering: %w\n%s", err, output)
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(output), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("decoding a rendered object: %w", err)
		}
		object.SetOwnerReferences(nil)
		objects = append(objects, object)
	}
	return objects, nil
}

// measureCreation compares the manager with a client that applies the same objects in sequence. The last MLflow is kept for the next
// steps.
func (b *bench) measureCreation(ctx context.Context) error {
	objects, err := b.children(ctx)
	if err != nil {
		return err
	}
	var bare, managed []time.Duration
	var writes int
	for range rounds {
		if err := b.deleteAll(ctx, append([]*unstructured.Unstructured{mlflowReference()}, objects...)); err != nil {
			return err
		}
		took, err := b.applyBare(ctx, objects)
		if err != nil {
			return err
		}
		bare = append(bare, took)
		if err := b.deleteAll(ctx, objects); err != nil {
			return err
		}
		if took, writes, err = b.createServer(ctx, objects); err != nil {
			return err
		}
		managed = append(managed, took)
	}
	b.addFigure("creating one MLflow: writes", fmt.Sprintf("%d for %d objects", writes, len(objects)), "children + 1 for the Deployment after the migration + 4 to 6 for the status", "114")
	b.addFigure("creating one MLflow: until all objects exist", fmt.Sprintf("%d ms; bare client %d ms: %.2f times; medians of %d",
		median(managed).Milliseconds(), median(bare).Milliseconds(), median(managed).Seconds()/median(bare).Seconds(), rounds), "<= 1.5 times", "")
	b.addRatio("creating one MLflow", median(managed).Seconds()/median(bare).Seconds())
	return nil
}

func median(all []time.Duration) time.Duration { return slices.Sorted(slices.Values(all))[len(all)/2] }

// mlflowReference returns the MLflow with only kind and name.
func mlflowReference() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(mlflowv1.GroupVersion.WithKind("MLflow"))
	u.SetName(mlflowv1.SingletonName)
	return u
}

func (b *bench) applyBare(ctx context.Context, objects []*unstructured.Unstructured) (time.Duration, error) {
	start := b.clock.Now()
	for _, object := range objects {
		config := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
		if err := b.admin.Apply(ctx, config, client.FieldOwner("bench"), client.ForceOwnership); err != nil {
			return 0, fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return b.clock.Since(start), nil
}

// createServer creates the MLflow, and returns the time until all objects existed and the number of writes until the manager was idle.
func (b *bench) createServer(ctx context.Context, objects []*unstructured.Unstructured) (took time.Duration, writes int, err error) {
	begin, err := b.audit.Position()
	if err != nil {
		return 0, 0, err
	}
	start := b.clock.Now()
	if err := b.admin.Create(ctx, newMLflow()); err != nil {
		return 0, 0, fmt.Errorf("creating the MLflow: %w", err)
	}
	for _, object := range objects {
		if err := b.waitUntil(ctx, pollInterval, func() (bool, error) { return b.exists(ctx, object) }); err != nil {
			return 0, 0, fmt.Errorf("waiting for %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	took = b.clock.Since(start)
	if err := b.waitIdle(ctx); err != nil {
		return 0, 0, err
	}
	_, writes, _, err = b.requests(begin)
	return took, writes, err
}

func (b *bench) exists(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err := b.admin.Get(ctx, client.ObjectKeyFromObject(object), live)
	return err == nil, client.IgnoreNotFound(err)
}

// deleteAll deletes objects and waits for their deletion; a PersistentVolumeClaim remains until no pod uses it.
func (b *bench) deleteAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := b.admin.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationForeground)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for _, object := range objects {
		if err := b.waitUntil(ctx, 10*pollInterval, func() (bool, error) {
			found, err := b.exists(ctx, object)
			return !found, err
		}); err != nil {
			return fmt.Errorf("waiting for the deletion of %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// measureIdle observes the idle manager without changes, and then after a change of every child. The second observation also yields the
// duration of a reconcile without differences.
func (b *bench) measureIdle(ctx context.Context) error {
	objects, err := b.children(ctx)
	if err != nil {
		return err
	}
	observe := func(name string) error {
		start, err := b.audit.Position()
		if err != nil {
			return err
		}
		if err := b.pause(ctx, b.window); err != nil {
			return err
		}
		reads, writes, _, err := b.requests(start)
		if err != nil {
			return err
		}
		b.addFigure(fmt.Sprintf("%s, %s", name, b.window), fmt.Sprintf("%d reads, %d writes", reads, writes), "0 writes", "96 writes when its pod is not ready")
		return nil
	}
	if err := observe("idle"); err != nil {
		return err
	}
	before, err := b.metrics(ctx)
	if err != nil {
		return err
	}
	for _, object := range objects {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"bench/touched":"yes"}}}`))
		if err := b.admin.Patch(ctx, object.DeepCopy(), patch); err != nil {
			return fmt.Errorf("changing %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if err := observe("after a change of every child"); err != nil {
		return err
	}
	after, err := b.metrics(ctx)
	if err != nil {
		return err
	}
	const seconds, reconciles = "controller_runtime_reconcile_time_seconds_sum", "controller_runtime_reconcile_time_seconds_count"
	if count := after[reconciles] - before[reconciles]; count > 0 {
		b.addFigure("one reconcile of an unchanged MLflow", fmt.Sprintf("%.2f ms, mean of %.0f", 1000*(after[seconds]-before[seconds])/count, count), "", "16 ms for each apply")
	}
	return nil
}

// measureMLflowRestart counts the requests of a new process.
func (b *bench) measureMLflowRestart(ctx context.Context) error {
	return b.countRestartRequests(ctx, "restart with one MLflow", "bounded reads, 0 writes", "344 reads, 1,142 writes for 100 of each kind")
}

func (b *bench) countRestartRequests(ctx context.Context, name, target, replaced string) error {
	start, err := b.audit.Position()
	if err != nil {
		return err
	}
	if err := b.manager.Restart(ctx); err != nil {
		return err
	}
	if err := b.waitIdle(ctx); err != nil {
		return err
	}
	reads, writes, others, err := b.requests(start)
	if err != nil {
		return err
	}
	b.addFigure(name, fmt.Sprintf("%d reads, %d writes, %s", reads, writes, others), target, replaced)
	return nil
}

// measureForeignSecrets measures a new process before and after the creation of many foreign Secrets.
func (b *bench) measureForeignSecrets(ctx context.Context) error {
	rssBefore, heapBefore, err := b.memory(ctx)
	if err != nil {
		return err
	}
	otherNamespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other-namespace"}}
	if err := b.admin.Create(ctx, otherNamespace); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("creating a namespace: %w", err)
	}
	if err := runConcurrently(ctx, b.secrets, func(i int) error {
		secret := &corev1.Secret{Data: map[string][]byte{"release": bytes.Repeat([]byte("x"), 1000)}}
		secret.Namespace, secret.Name = []string{namespace, otherNamespace.Name}[i%2], fmt.Sprintf("sh.helm.release.v1.application-%d.v1", i)
		secret.Labels = map[string]string{"owner": "helm", "status": "deployed", "version": "1"}
		return client.IgnoreAlreadyExists(b.admin.Create(ctx, secret))
	}); err != nil {
		return fmt.Errorf("creating Secrets: %w", err)
	}
	if err := b.manager.Restart(ctx); err != nil {
		return err
	}
	rssAfter, heapAfter, err := b.memory(ctx)
	if err != nil {
		return err
	}
	b.addFigure(fmt.Sprintf("%d foreign Secrets: resident memory", b.secrets), "+"+mebibytes(rssAfter-rssBefore), "< 5 MiB more", "out of memory in production")
	b.addFigure(fmt.Sprintf("%d foreign Secrets: live heap", b.secrets), "+"+mebibytes(heapAfter-heapBefore), "< 5 MiB more", "")
	return nil
}
