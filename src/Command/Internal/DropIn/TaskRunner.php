<?php

declare(strict_types=1);

// The autoloader loads this file for the class TaskRunner\TaskRunner of the library TaskRunner.php.
class_alias(Spindle\Command\TaskRunner::class, 'TaskRunner\TaskRunner');
