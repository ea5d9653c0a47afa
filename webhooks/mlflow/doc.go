// Package mlflow is the validating webhook of MLflow. It checks the permissions of the author for the objects and settings that pods use;
// the schema validates everything else.
package mlflow
