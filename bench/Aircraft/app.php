<?php

declare(strict_types=1);

/*
 * The aircraft application with the Spindle of the measured checkout. Except for this, it is the same as
 * examples/aircraft/app.php, which would load the Spindle of this checkout.
 */

use Aircraft\Services;
use Aircraft\Settings;

require_once __DIR__ . '/../autoload.php';

return Services::ofServer(Settings::ofEnvironment())->application();
