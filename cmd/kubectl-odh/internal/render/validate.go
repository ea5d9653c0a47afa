package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/render"
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
	c.Flags().StringVarP(&o.file, "filename", "f", "", `File with custom resources; "-" reads the standard input.`)
	c.Flags().StringVar(&o.platform, "platform", render.DefaultPlatform, "Kind of cluster to assume: "+strings.Join(render.Platforms(), ", ")+".")
	c.Flags().BoolVar(&o.cluster, "cluster", false, "Have the API server check the resources, in a dry run.")
	return c
}

// errUnjudged says that no webhook judges a kind.
var errUnjudged = errors.New("no webhook of the manager judges this kind; --cluster checks its schema")

func (o options) validate(ctx context.Context, args []string) error {
	documents, err := o.read("validate")
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
		switch warnings, err := judge(ctx, obj); {
		case errors.Is(err, errUnjudged):
			fmt.Fprintf(o.Out, "%s: not checked: %v\n", name, err)
		case err != nil && isRefusal(err):
			fmt.Fprintf(o.Out, "%s: refused: %v\n", name, err)
			result = cli.ErrWrong
		case err != nil:
			return fmt.Errorf("validate %s: %w", name, err)
		default:
			fmt.Fprintf(o.Out, "%s: ok\n", name)
			for _, warning := range warnings {
				fmt.Fprintf(o.Out, "%s: warning: %s\n", name, warning)
			}
		}
	}
	return result
}

// refusal is that of a webhook in this program.
type refusal struct{ error }

// isRefusal tells the words of admission from other trouble, such as permissions that the caller lacks.
func isRefusal(err error) bool {
	if _, is := errors.AsType[refusal](err); is {
		return true
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || strings.HasPrefix(err.Error(), "admission webhook ")
}

// judge judges an object. It returns warnings, and as an error a refusal or what kept it from judging.
type judge func(context.Context, *unstructured.Unstructured) (warnings []string, err error)

func (o options) judge(ctx context.Context, args []string) (judge, error) {
	if o.cluster {
		if len(args) > 0 {
			return nil, fmt.Errorf("validate: %q are settings, which come from the cluster; leave them out, or leave out --cluster", args)
		}
		return o.dryRun()
	}
	env, err := o.offline(ctx, args)
	return func(ctx context.Context, obj *unstructured.Unstructured) ([]string, error) {
		if !review.Judges(obj.GroupVersionKind().GroupKind()) {
			return nil, errUnjudged
		}
		warnings, err := review.Created(ctx, env, obj)
		if err != nil {
			err = refusal{err}
		}
		return warnings, err
	}, err
}

// dryRun has the API server create an object without storing it.
func (o options) dryRun() (judge, error) {
	cluster, err := o.Connect()
	if err != nil {
		return nil, err
	}
	mapper, err := o.Config.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	config, err := o.Config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	said := &warnings{}
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = said
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the client: %w", err)
	}
	return func(ctx context.Context, obj *unstructured.Unstructured) ([]string, error) {
		kind := obj.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, err
		}
		namespace := ""
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			namespace = cmp.Or(obj.GetNamespace(), cluster.Namespace)
		}
		said.texts = nil
		_, err = client.Resource(mapping.Resource).Namespace(namespace).Create(ctx, obj, metav1.CreateOptions{
			FieldManager: "kubectl-odh", DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
		})
		if apierrors.IsAlreadyExists(err) { // which storage finds, after admission
			err = nil
		}
		return said.texts, err
	}, nil
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
