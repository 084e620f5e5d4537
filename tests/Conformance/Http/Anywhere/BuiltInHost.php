<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use PHPUnit\Framework\Assert;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\WebServer;

/** Shares one of PHP's built-in servers among the tests of a class. */
final class BuiltInHost extends Assert
{
    use FrontController;
    use OwnDirectory;
    use WebServer;

    public readonly string $address;

    /** Path of PHP's error log. */
    public readonly string $log;

    /**
     * @param bool $logs whether errors go to the log; they are displayed, too, which must not change the body
     * @param string $logger code of the application's logger; '' for none
     * @param list<string> $php options of PHP
     */
    public function __construct(bool $logs = false, string $logger = '', array $php = [])
    {
        $this->log = $this->path('error.log');
        $page = $this->frontController();
        if ($logs) {
            $settings = "ini_set('display_errors', '1'); ini_set('log_errors', '1');"
                . " ini_set('error_log', '{$this->log}');";
            file_put_contents($page, str_replace('<?php', "<?php {$settings}", (string) file_get_contents($page)));
        }
        if ($logger !== '') {
            $run = "Sapi::run(new Spindle\\Http\\Application(require \\1, logger: {$logger}))";
            $code = preg_replace('/Sapi::run\((.*)\)/', $run, (string) file_get_contents($page));
            file_put_contents($page, $code);
        }
        $this->address = substr($this->startBuiltIn($page, $php), \strlen('http://'), -\strlen('/page'));
    }

    public function stop(): void
    {
        $this->stopServer();
        $this->removeDirectory();
    }
}
