package render

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/review"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
)

const validateLong = `Check custom resources as admission does when they are created.

Without --cluster, the webhooks of the manager run in this program, with the
settings that render uses, as if the author had every permission. The schemas of
CRDs, and rules in them, are not checked.

With --cluster, the API server checks the resources without storing them: schemas,
rules and all webhooks of the cluster, with your permissions. You need the
permission to create them.

The exit code is 1 if a resource would be refused.`

const validateExamples = `  kubectl odh validate -f registry.yaml
  kubectl odh validate -f registry.yaml --cluster`

// Validate checks custom resources.
func Validate(common *cli.Options) *cobra.Command {
	o := options{Options: common}
	c := &cobra.Command{
		Use: "validate -f FILE [-- MANAGER-FLAGS...]", Short: "Check custom resources as admission does", Long: validateLong, Example: validateExamples,
		RunE: func(c *cobra.Command, args []string) error { return o.validate(c.Context(), args) },
	}
	o.addTo(c, "Have the API server check the resources, in a dry run.")
	return c
}

func (o options) validate(ctx context.Context, args []string) error {
	documents, err := o.read("validate", args)
	if err != nil {
		return err
	}
	judge, err := o.judge(ctx, args)
	if err != nil {
		return err
	}
	var result error
	for _, obj := range documents {
		name := strings.ToLower(obj.GetKind()) + "/" + obj.GetName()
		if !o.cluster && !review.Judges(obj.GroupVersionKind().GroupKind()) {
			fmt.Fprintf(o.Out, "%s: not checked: no webhook of the manager judges this kind; --cluster checks its schema\n", name)
			continue
		}
		switch warnings, refusal, err := judge(ctx, obj); {
		case err != nil:
			return fmt.Errorf("validate %s: %w", name, err)
		case refusal != nil:
			fmt.Fprintf(o.Out, "%s: refused: %v\n", name, refusal)
			result = cli.ErrWrong
		default:
			fmt.Fprintf(o.Out, "%s: ok\n", name)
			for _, warning := range warnings {
				fmt.Fprintf(o.Out, "%s: warning: %s\n", name, warning)
			}
		}
	}
	return result
}

// judge judges an object: it returns warnings or a refusal, or what kept it from judging.
type judge func(context.Context, *unstructured.Unstructured) (warnings []string, refusal, err error)

func (o options) judge(ctx context.Context, args []string) (judge, error) {
	if o.cluster {
		return o.dryRun(ctx)
	}
	in, err := o.offline(ctx, args)
	return func(ctx context.Context, obj *unstructured.Unstructured) (warnings []string, refusal, err error) {
		warnings, refusal = review.Created(ctx, in.env, obj)
		return warnings, refusal, nil
	}, err
}

// dryRun has the API server create an object without storing it.
func (o options) dryRun(ctx context.Context) (judge, error) {
	said := &warnings{}
	o.Warnings = said
	cluster, reader, err := o.Read(ctx)
	return func(ctx context.Context, obj *unstructured.Unstructured) (warnings []string, refusal, err error) {
		gvk := obj.GroupVersionKind()
		kind, namespace := reader.Exact(gvk), ""
		switch {
		case !kind.Served():
			return nil, nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
		case kind.Namespaced:
			namespace = cmp.Or(obj.GetNamespace(), cluster.Namespace)
		}
		said.texts = nil
		_, err = cluster.Dynamic.Resource(kind.GVR()).Namespace(namespace).Create(ctx, obj, metav1.CreateOptions{
			FieldManager: "kubectl-odh", DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
		})
		switch {
		case apierrors.IsAlreadyExists(err): // which storage finds, after admission
			return said.texts, nil, nil
		case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || err != nil && strings.HasPrefix(err.Error(), "admission webhook "):
			return nil, err, nil
		}
		return said.texts, nil, err // such as that the caller lacks the permission
	}, err
}

// miscellaneous is the code of warnings by the API server and by webhooks.
const miscellaneous = 299

// warnings are those of one request.
type warnings struct{ texts []string }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code == miscellaneous && text != "" {
		w.texts = append(w.texts, text)
	}
}
